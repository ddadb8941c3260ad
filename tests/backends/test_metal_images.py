"""Textures and samplers of the Metal device: Metal's own objects, filled and emptied by copies."""

import itertools

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.metal.compile import limits
from metalloid.backends.metal.runtime.textures import format_name
from metalloid.compat import Metal
from metalloid.runtime.textures.descriptor import KIND_EXTENTS
from metalloid.runtime.textures.pixel_formats import FORMATS
from metalloid.runtime.textures.sampler import _FIELDS, settings_of

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void twice(texture2d<float, access::read> in, texture2d<float, access::write> out,
                  uint2 p [[thread_position_in_grid]]) { out.write(2 * in.read(p), p); }
kernel void more(texture2d<float, access::read_write> t, uint2 p [[thread_position_in_grid]])
{ t.write(t.read(p) + 1, p); }
kernel void planes(texture3d<float, access::read> in, texture2d_array<float, access::write> out,
                   uint3 p [[thread_position_in_grid]]) { out.write(in.read(p) + 1, p.xy, p.z); }
kernel void levels(texture2d<float, access::read> in, device float* y, uint i [[thread_position_in_grid]])
{ y[i] = in.read(uint2(0), i).x; }
kernel void between(texture2d<float> t, sampler s, device float& y) { y = t.sample(s, float2(0.5)).x; }
kernel void either(array<texture2d<float>, 2> t, array<sampler, 2> s, device float* y)
{ y[0] = t[0].sample(s[1], float2(0.5)).x; y[1] = t[1].sample(s[0], float2(0.6)).x; }
kernel void far(texture2d<float, access::read_write> t, device float* x)
{ t.write(float4(5), uint2(0)); x[1ul << 40] = 1; }
kernel void add_one(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
"""


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[1:, 2:],  # texels of other rows lie between
        lambda x: x[::-1],
        lambda x: x[::2, 3:4],
        lambda x: np.broadcast_to(x[0], x.shape).copy()[:1],
    ],
)
def test_rows_may_lie_anywhere(lib, view):
    x = np.arange(4 * 6 * 4, dtype=np.float32).reshape(4, 6, 4)
    into = np.full((8, 12, 4), -1, np.float32)
    expected = into.copy()
    shape = view(x).shape
    out, view_of_expected = (a[2 : 2 + shape[0]][::-1, 1 : 1 + shape[1]] for a in (into, expected))
    view_of_expected[...] = 2 * view(x)
    lib.twice(view(x), out, threads=shape[1::-1])
    np.testing.assert_array_equal(into, expected)


def test_slices_and_levels(lib, rng):
    x = rng.random((3, 5, 7, 2), np.float32)
    out = np.zeros((3, 5, 7, 2), np.float32)
    lib.planes(x[:, ::2, :4], out[:, ::2, :4], threads=(4, 3, 3))
    np.testing.assert_array_equal(out[:, ::2, :4], x[:, ::2, :4] + 1)
    assert (out[:, 1::2] == 0).all()
    texture = mtl.Texture(x[0, ..., 0], mipmaps=True, device=lib.device)
    y = np.zeros(3, np.float32)
    lib.levels(texture, y, threads=3)
    assert y.tolist() == [texture.numpy(level)[0, 0] for level in range(3)]


def test_launches_follow_each_other(metal, lib):
    """Launches of one batch, with launches of buffers between them."""
    t, x = mtl.Texture((4, 4), "r32float", device=metal), mtl.Buffer(np.zeros(4, np.float32), metal)
    for _ in range(5):
        lib.more(t, threads=(4, 4))
        lib.add_one(x, threads=4)
        lib.add_one(x, threads=4)
    assert (t.numpy() == 5).all()
    assert np.asarray(x).tolist() == [10] * 4
    image = np.zeros((2, 2), np.float32)
    events = [lib.more(image, threads=(2, 2), wait=False) for _ in range(3)]
    events[-1].wait()
    assert (image == 3).all()


def test_the_same_memory_as_texture_and_as_buffer(metal, lib):
    x = mtl.Buffer(np.ones((2, 2), np.float32), metal)
    lib.more(x, threads=(2, 2))
    lib.add_one(x, threads=4)
    lib.more(np.asarray(x)[1:], threads=(2, 1))
    assert np.asarray(x).tolist() == [[3, 3], [4, 4]]


def test_a_fault_of_a_kernel_with_textures(metal, lib):
    t, x = mtl.Texture((2, 2), "r32float", device=metal), mtl.Buffer(4, metal)
    lib.far(t, x, threads=1)
    with pytest.raises(mtl.KernelFault, match=r"\[far\]"):
        t.numpy()
    lib.more(t, threads=(2, 2))
    assert t.numpy()[1, 1] == 1


def test_arrays_of_textures_and_samplers(lib):
    images = [np.float32([[1, 2], [1, 2]]), mtl.Texture(np.float32([[5, 7]]), device=lib.device)]
    y = np.zeros(2, np.float32)
    lib.either(images, [mtl.Sampler(), mtl.Sampler(filter="linear")], y, threads=1)
    assert y.tolist() == [1.5, 7]


# -- samplers


def test_settings_come_back_from_the_word():
    for name, (_, values) in _FIELDS.items():
        for value in values:
            word = mtl.Sampler(**{name: value}).word
            assert settings_of(word)[name] == value
            assert mtl.Sampler(**settings_of(word)).word == word
    for given in (
        {"lod_clamp": (0.5, 3)},
        {"lod_bias": -16},
        {"lod_bias": 15.5},
        {"max_anisotropy": 16},
    ):
        word = mtl.Sampler(**given).word
        assert mtl.Sampler(**settings_of(word)).word == word
        (name,) = given
        assert settings_of(word)[name] == given[name]


def test_metal_is_told_every_setting(metal):
    """The software device reads the original sampler back from its descriptor."""
    for name, (_, values) in _FIELDS.items():
        for value in values:
            word = mtl.Sampler(**{"compare_func": "never", name: value}).word
            if (name, value) == ("compare_func", "none"):
                continue  # Metal has no word for it: never, as it is from the start
            assert metal.samplers.state(word).sampler.word == word, (name, value)
    word = mtl.Sampler(
        lod_clamp=(0.5, 3), lod_bias=-1.5, max_anisotropy=4, compare_func="less"
    ).word
    assert metal.samplers.state(word).sampler.word == word
    assert metal.samplers.state(word) is metal.samplers.state(word)


def test_settings_of_a_newer_macos(lib, monkeypatch):
    monkeypatch.delattr(Metal.MTLSamplerDescriptor, "setLodBias_")
    with pytest.raises(mtl.ArgumentError, match=r"lod_bias requires macOS 26"):
        lib.between(
            np.zeros((1, 1), np.float32),
            mtl.Sampler(lod_bias=3),
            np.zeros(1, np.float32),
            threads=1,
        )


# -- what Metal does not take


def test_formats_and_types_are_metals():
    for pixels, depth in itertools.product(FORMATS.values(), (False, True)):
        if depth and pixels.name not in ("r32float", "r16unorm", "depth32float", "depth16unorm"):
            with pytest.raises(mtl.ArgumentError, match="depth textures hold float32 or uint16"):
                format_name(pixels.code, depth)
            continue
        name = format_name(pixels.code, depth)
        assert getattr(Metal, name)
        if not pixels.name.startswith("depth") and not depth:
            assert name.removeprefix("MTLPixelFormat").lower() == pixels.name
        assert ("Depth" in name) == depth
    for name in limits.TEXTURE_KINDS.values():
        assert hasattr(Metal, f"MTLTextureType{name}")
    assert KIND_EXTENTS.keys() - limits.TEXTURE_KINDS.keys() == {"2d_ms", "buffer"}


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        ("texture2d_ms<float> t", "multisampled textures or texture buffers"),
        ("texture_buffer<float> t", "multisampled textures or texture buffers"),
        ("array<device float*, 2> t", "arrays of pointers, except in structs"),
        ("constant Args& t", "multisampled textures or texture buffers"),
    ],
)
def test_what_cannot_be_bound(metal, declared, what):
    source = f"""#include <metal_stdlib>
using namespace metal;
struct Args {{ int n; texture2d_ms<float> t; }};
kernel void k({declared}, device float* x) {{}}"""
    with pytest.raises(
        mtl.CompileError, match=rf"'t' \[.*Metal device does not support {what}"
    ) as caught:
        mtl.library(source, device=metal)["k"]
    assert caught.value.lineno == 4


def test_tensors_cannot_be_bound(metal):
    source = """#include <metal_stdlib>
#include <metal_tensor>
using namespace metal;
kernel void k(tensor<device float, dextents<int, 2>> t) {}"""
    with pytest.raises(mtl.CompileError, match=r"Metal device does not support tensors"):
        mtl.library(source, device=metal)["k"]


def test_textures_that_are_too_large(metal, lib):
    wide, y = np.zeros((1, 20_000), np.uint8), np.zeros((1, 1), np.float32)
    with pytest.raises(mtl.ArgumentError, match=r"\[twice\] .* 16384 texels along an axis"):
        lib.twice(wide, y, threads=(1, 1))
    one = mtl.library(
        "#include <metal_stdlib>\nkernel void k(metal::texture1d<float> t) {}", device=metal
    )
    with pytest.raises(mtl.ArgumentError, match="one-dimensional textures have one mip level"):
        one.k(
            mtl.Texture(np.zeros(8, np.float32), kind="1d", mipmaps=True, device=metal), threads=1
        )


def test_texels_that_are_not_aligned(metal, lib):
    memory = np.asarray(mtl.Buffer(100, metal))
    with pytest.raises(mtl.ArgumentError, match="texels of 4 bytes are not aligned: pass a copy"):
        lib.more(memory[1:17].reshape(2, 2, 4), threads=(2, 2))


def test_there_is_no_memory(metal, lib, monkeypatch):
    monkeypatch.setattr(type(metal.gpu), "newTextureWithDescriptor_", lambda self, descriptor: None)
    with pytest.raises(mtl.OutOfMemory, match=r"cannot allocate 3 x 2 x 1 texels"):
        lib.more(np.zeros((2, 3), np.float32), threads=(3, 2))
