"""mtl.Texture, mtl.Sampler, and what else may stand for a texture."""

import functools

import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


@functools.cache
def kernels():
    return mtl.library(
        HEADER
        + """
kernel void twice(texture2d<float, access::read> in [[texture(0)]],
                  texture2d<float, access::write> out [[texture(1)]],
                  uint2 p [[thread_position_in_grid]]) { out.write(2 * in.read(p), p); }
kernel void more(texture2d<float, access::read_write> t, uint2 p [[thread_position_in_grid]])
{ t.write(t.read(p) + 1, p); }
kernel void many(sampler s [[sampler(1)]], texture2d<float> b [[texture(1)]],
                 constant float& y [[buffer(3)]], texture3d<half, access::write> a [[texture(0)]],
                 constant float& x [[buffer(1)]], sampler r [[sampler(0)]],
                 threadgroup float* m [[threadgroup(0)]], depthcube<float> c) {}
kernel void scratch(threadgroup float* t, device float* y, uint i [[thread_position_in_grid]])
{ t[i] = 2 * y[i]; y[i] = t[i] + 1; }
"""
    )


def test_shapes_and_views(rng):
    texels = rng.integers(0, 255, (4, 6, 2)).astype(np.uint8)
    texture = mtl.Texture(texels)
    texels += 1  # it has its own copy
    assert (texture.numpy() == texels - 1).all()
    assert (texture.shape, texture.channels, texture.format) == ((4, 6), 2, "rg8unorm")
    texture.numpy()[1, 2] = 77  # and shows it in place
    out = np.zeros((4, 6, 2), np.float32)
    kernels().twice(texture, out, threads=(6, 4))
    assert (out[1, 2] == 2 * np.float32(77) / np.float32(255)).all()


@pytest.mark.parametrize(
    ("kind", "shape", "levels"),
    [("1d", (9,), 4), ("1d_array", (3, 9), 4), ("2d", (5, 12), 4), ("2d_array", (7, 4, 4), 3),
     ("3d", (9, 2, 4), 4), ("cube", (6, 8, 8), 4), ("cube_array", (2, 6, 4, 4), 3),
     ("2d_ms", (4, 8, 8), 1), ("buffer", (100,), 1)],
)  # fmt: skip
def test_kinds_and_levels(kind, shape, levels, rng):
    texels = rng.random((*shape, 4), np.float32)
    texture = mtl.Texture(texels, kind=kind, mipmaps=True)
    assert texture.levels == levels
    assert (texture.numpy() == texels).all()
    shrinking = {"1d": 1, "1d_array": 1, "3d": 3}.get(kind, 2)
    for level in range(1, levels):
        above, below = texture.numpy(level - 1), texture.numpy(level)
        axes = range(len(shape) - shrinking, len(shape))
        size = [max(n // 2, 1) if axis in axes else n for axis, n in enumerate(above.shape)]
        assert below.shape == tuple(size)
        # The average of 2, 4 or 8 texels, fewer along an axis of one texel.
        for axis in axes:
            pairs = np.arange(size[axis])
            first = above.take(np.minimum(2 * pairs, above.shape[axis] - 1), axis)
            second = above.take(np.minimum(2 * pairs + 1, above.shape[axis] - 1), axis)
            above = (first.astype(np.float64) + second) / 2
        np.testing.assert_allclose(below, above, rtol=2**-23)


def test_levels_of_codes_are_averages_of_what_they_stand_for():
    texels = np.zeros((1, 2, 4), np.uint8)
    texels[0, 1] = 255
    assert mtl.Texture(texels, mipmaps=True).numpy(1).tolist() == [[[128] * 4]]
    # Half the light is code 188 in sRGB; alpha is never encoded.
    srgb = mtl.Texture(texels, "rgba8unorm_srgb", mipmaps=True)
    assert srgb.numpy(1).tolist() == [[[188, 188, 188, 128]]]
    integers = mtl.Texture(texels[..., 0], "r8uint", mipmaps=True)
    assert integers.numpy(1).tolist() == [[0]]


def test_launches_on_textures_do_not_wait_and_reading_does():
    texture = mtl.Texture((300, 300), "r32float")
    for _ in range(20):
        kernels().more(texture, threads=(300, 300))
    assert (texture.numpy() == 20).all()
    x = np.zeros((300, 300), np.float32)
    assert kernels().twice(texture, x, threads=(300, 300)).done  # an array is complete
    assert (x == 40).all()


@pytest.mark.needs("the CPU")
def test_a_failing_kernel_is_told_when_its_texture_is_read():
    lib = mtl.library(
        HEADER
        + """
kernel void fail(texture2d<float, access::write> t, device int* x)
{ t.write(float4(1), uint2(0)); x[0] = 100 / x[1]; }"""
    )
    texture = mtl.Texture((2, 2), "r8unorm")
    zeros = mtl.Buffer(np.zeros(4, np.int32))
    lib.fail(texture, zeros, threads=1)
    with pytest.raises(mtl.KernelFault, match="division by zero"):
        texture.numpy()


def test_what_else_may_stand_for_a_texture(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = rng.random((4, 6, 4), np.float32)
    out = np.zeros_like(image)
    for value in (torch.from_numpy(image), mtl.Buffer(image), memoryview(image)):
        out[:] = 0
        kernels().twice(value, out, threads=(6, 4))
        assert (out == 2 * image).all()
    tensor = torch.zeros((4, 6, 4))
    kernels().twice(image, tensor, threads=(6, 4))
    assert (tensor.numpy() == 2 * image).all()
    buffer = mtl.Buffer(np.zeros_like(image))
    kernels().twice(image, buffer, threads=(6, 4))
    assert (np.asarray(buffer) == 2 * image).all()


def test_the_order_of_arguments():
    """As the text declares them, but each kind among itself by index."""
    signature = kernels().many.signature
    assert [p.name for p in signature.arguments] == ["r", "a", "x", "b", "y", "s", "c"]
    assert [(p.name, p.index) for p in signature.buffers] == [("x", 1), ("y", 3)]
    assert [(p.name, p.index) for p in signature.textures] == [("a", 0), ("b", 1), ("c", 2)]
    assert [(p.name, p.index) for p in signature.samplers] == [("r", 0), ("s", 1)]
    assert [p.name for p in signature.threadgroup] == ["m"]
    kinds = [(p.layout.texture.kind, p.layout.texture.element, p.layout.texture.access,
              p.layout.texture.is_depth) for p in signature.textures]  # fmt: skip
    assert kinds == [
        ("3d", "half", "write", False), ("2d", "float", "sample", False),
        ("cube", "float", "sample", True),
    ]  # fmt: skip


def test_threadgroup_memory_needs_no_attribute():
    y = np.arange(8, dtype=np.float32)
    kernels().scratch(y, mtl.threadgroup_memory(32), threads=8, group_size=8)
    assert y.tolist() == [2 * i + 1 for i in range(8)]


def test_samplers_are_words():
    plain = mtl.Sampler()
    assert plain.word == mtl.Sampler(filter="nearest", lod_clamp=(0, float("inf"))).word
    assert plain.word != mtl.Sampler(filter="linear").word
    both = mtl.Sampler(min_filter="linear", mag_filter="linear")
    assert both.word == mtl.Sampler(filter="linear").word
    assert "s_address='repeat'" in repr(mtl.Sampler(s_address="repeat"))


def test_functions_for_others_are_functions():
    """[[visible]] and [[stitchable]] functions can be called like any."""
    lib = mtl.library(
        HEADER
        + """
[[visible]] float twice(float x) { return 2 * x; }
[[stitchable]] float more(float x) { return twice(x) + 1; }
extern "C" [[visible]] float third(float x) { return x / 3; }
kernel void f(device float* y) { y[0] = more(y[0]) + third(3); }
"""
    )
    y = np.float32([5])
    lib.f(y, threads=1)
    assert y[0] == 12
    assert lib.functions == ("f",)


def test_render_functions_next_to_kernels_do_no_harm():
    lib = mtl.library(
        HEADER
        + """
struct V { float4 p [[position]]; float2 uv; };
vertex V v(uint i [[vertex_id]]) { V o; o.p = 0; o.uv = 1; return o; }
fragment half4 g(V in [[stage_in]], texture2d<half> t [[texture(0)]]) {
  constexpr sampler s(filter::linear);
  return t.sample(s, in.uv);
}
kernel void f(device float* y) { y[0] = 1; }
"""
    )
    y = np.zeros(1, np.float32)
    lib.f(y, threads=1)
    assert y[0] == 1
    with pytest.raises(mtl.UnknownFunction, match="is a fragment function"):
        _ = lib.g
