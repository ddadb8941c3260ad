"""read(), write(), sizes and atomics of every kind of texture; what happens outside."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
SHAPES = {
    "texture1d": (6,), "texture1d_array": (3, 6), "texture2d": (5, 6), "texture2d_array": (3, 5, 6),
    "texture3d": (4, 5, 6), "texturecube": (6, 5, 5), "texturecube_array": (2, 6, 5, 5),
    "texture_buffer": (6,), "texture2d_ms": (4, 5, 6),
}  # fmt: skip
#: Arguments of read() for a thread at (x, y, z), where z counts slices.
ARGUMENTS = {
    "texture1d": "p.x", "texture1d_array": "p.x, p.z", "texture2d": "p.xy",
    "texture2d_array": "p.xy, p.z", "texture3d": "p", "texturecube": "p.xy, p.z",
    "texturecube_array": "p.xy, p.z % 6, p.z / 6", "texture_buffer": "p.x",
    "texture2d_ms": "p.xy, p.z",
}  # fmt: skip
SIZES = {
    "texture1d": "t.get_width(), t.get_num_mip_levels()",
    "texture1d_array": "t.get_width(), t.get_array_size()",
    "texture2d": "t.get_width(), t.get_height()",
    "texture2d_array": "t.get_width(), t.get_height(), t.get_array_size()",
    "texture3d": "t.get_width(), t.get_height(), t.get_depth()",
    "texturecube": "t.get_width(), t.get_height()",
    "texturecube_array": "t.get_width(), t.get_height(), t.get_array_size()",
    "texture_buffer": "t.get_width(), 0",
    "texture2d_ms": "t.get_width(), t.get_height(), t.get_num_samples()",
}
MEANT = {
    "texture1d": [6, 1], "texture1d_array": [6, 3], "texture2d": [6, 5],
    "texture2d_array": [6, 5, 3], "texture3d": [6, 5, 4], "texturecube": [5, 5],
    "texturecube_array": [5, 5, 2], "texture_buffer": [6, 0], "texture2d_ms": [6, 5, 4],
}  # fmt: skip
#: With what a device needs for them.
NAMES = [
    pytest.param(name, marks=pytest.mark.needs("every kind of texture"))
    if name in ("texture_buffer", "texture2d_ms")
    else name
    for name in SHAPES
]
IDS = "uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_grid]]"


@functools.cache
def kernels():
    text = HEADER
    for name, arguments in ARGUMENTS.items():
        text += f"""
kernel void read_{name}({name}<float, access::read> t, device float4* y, {IDS})
{{ y[p.x + size.x * (p.y + size.y * p.z)] = t.read({arguments}); }}
kernel void sizes_{name}({name}<float, access::read> t, device uint* y)
{{ uint sizes[] = {{{SIZES[name]}}}; for (uint i = 0; i < sizeof(sizes) / 4; ++i) y[i] = sizes[i]; }}
"""
        if name != "texture2d_ms":
            text += f"""
kernel void write_{name}({name}<float, access::write> t, device const float* x, {IDS})
{{ t.write(float4(x[p.x + size.x * (p.y + size.y * p.z)], 7, 8, 9), {arguments}); }}
"""
    return mtl.library(text)


def cells(name):
    """Array of a texture's shape seen as (slices, rows, columns)."""
    shape = SHAPES[name]
    rows = 1 if "1d" in name or "buffer" in name else shape[-2]
    return -1, rows, shape[-1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(3)
def test_read_inside_and_outside(name, rng):
    x = rng.random(SHAPES[name], np.float32) + 1
    slices, rows, columns = (n + 3 for n in x.reshape(cells(name)).shape)
    if "1d" in name or "buffer" in name:
        rows = 1
    if name in ("texture1d", "texture2d", "texture_buffer"):
        slices = 1
    y = np.full((slices, rows, columns, 4), -1, np.float32)
    getattr(kernels(), f"read_{name}")(x, y, threads=(columns, rows, slices))
    expected = np.zeros_like(y)
    expected[..., 3] = 1  # as the format has no alpha
    inside = x.reshape(cells(name))
    expected[tuple(slice(n) for n in inside.shape)] = np.stack(
        [inside, 0 * inside, 0 * inside, 0 * inside + 1], -1
    )
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.sample(3)
def test_reads_outside_are_opaque_without_alpha(dtype, channels):
    msl = {"float32": "float", "int32": "int", "uint8": "float"}[dtype]
    lib = mtl.library(f"""
    #include <metal_stdlib>
    using namespace metal;
    kernel void f(texture2d<{msl}, access::read> t, device {msl}4* y,
                  uint i [[thread_position_in_grid]]) {{ y[i] = t.read(uint2(i, 0)); }}
    """)
    y = np.zeros((6, 4), np.int32 if msl == "int" else np.float32)
    lib.f(np.full((1, 4, channels), 3, dtype), y, threads=6)
    assert y[4:].tolist() == [[0, 0, 0, channels < 4]] * 2
    assert (y[:4, 0] > 0).all()


@pytest.mark.parametrize("name", NAMES[:-1])  # multisampled ones are only read
@pytest.mark.sample(2)
def test_write_inside_and_outside(name, rng):
    """The texture lies in the middle of memory that must stay as it is."""
    count = int(np.prod(SHAPES[name]))
    memory = np.full(count + 200, -5, np.float32)
    texture = memory[100 : 100 + count].reshape(SHAPES[name])
    slices, rows, columns = (n + 3 for n in texture.reshape(cells(name)).shape)
    if "1d" in name or "buffer" in name:
        rows = 1
    if name in ("texture1d", "texture2d", "texture_buffer"):
        slices = 1
    x = rng.random((slices, rows, columns), np.float32)
    getattr(kernels(), f"write_{name}")(texture, x, threads=(columns, rows, slices))
    inside = texture.reshape(cells(name))
    np.testing.assert_array_equal(inside, x[tuple(slice(n) for n in inside.shape)])
    assert (memory[:100] == -5).all()
    assert (memory[100 + count :] == -5).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(2)
def test_sizes(name):
    y = np.zeros(3, np.uint32)
    getattr(kernels(), f"sizes_{name}")(np.zeros(SHAPES[name], np.float32), y, threads=1)
    assert y[: len(MEANT[name])].tolist() == MEANT[name]


COORDINATES = (0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)


@given(
    x=st.sampled_from(COORDINATES) | st.integers(0, 2**32 - 1),
    y=st.sampled_from(COORDINATES) | st.integers(0, 2**32 - 1),
    lod=st.sampled_from([0, 1, 2, 3, 15, 16, 2**31, 2**32 - 1]),
)
def test_no_coordinate_leaves_the_texture(x, y, lod):
    texture = np.ones((2, 2, 4), np.float32)
    got = np.full(4, 5, np.float32)
    probe().probe(texture, texture.copy(), got, (x, y), lod, threads=1)
    assert (got == (1 if max(x, y) < 2 and lod == 0 else 0)).all()


@functools.cache
def probe():
    return mtl.library(
        HEADER
        + """
kernel void probe(texture2d<float, access::read> t, texture2d<float, access::write> u,
                  device float4& y, constant uint2& p, constant uint& lod)
{ y = t.read(p, lod); u.write(float4(3), p, lod); }
kernel void shorts(texture2d<float, access::read> t, texture2d<float, access::write> u,
                   texture1d<float, access::read> line, device float4& y,
                   ushort2 p [[thread_position_in_grid]])
{ u.write(t.read(p) + line.read(p.x) + line.read(1), p); y = t.read(0); }
float4 twice(texture2d<half, access::read_write> t, uint2 p) { return 2 * float4(t.read(p)); }
kernel void in_place(texture2d<half, access::read_write> t [[texture(3)]],
                     uint2 p [[thread_position_in_grid]])
{ t.write(half4(twice(t, p)), p); t.fence(); t.write(t.read(p) + 1, p); }
kernel void levels(texture2d<float> t, device uint4* y, uint i [[thread_position_in_grid]])
{ y[i] = uint4(t.get_width(i), t.get_height(i), t.get_num_mip_levels(), 0); }
kernel void level_of(texture2d<float> t, device float4* y, uint i [[thread_position_in_grid]])
{ y[i] = t.read(uint2(0), i); }
kernel void count(texture2d<uint, access::read_write> t, texture1d<int, access::read_write> u,
                  device uint* before, uint i [[thread_position_in_grid]]) {
  before[i] = t.atomic_fetch_add(uint2(1, 2), uint4(1)).x;
  t.atomic_fetch_max(uint2(2, 0), uint4(i));
  t.atomic_fetch_or(uint2(0, 0), uint4(1 << i % 32));
  t.atomic_fetch_add(uint2(9, 9), uint4(1));
  t.atomic_store(uint4(77), uint2(1, 0));
  u.atomic_fetch_min(0, int4(-int(i)));
  u.atomic_fetch_sub(1, int4(2));
  int4 expected = u.atomic_load(2);
  while (!u.atomic_compare_exchange_weak(2, &expected, expected + 3)) {}
  u.atomic_exchange(3, int4(5));
}
"""
    )


def test_coordinates_of_16_bits(rng):
    t, line = rng.random((4, 5, 4), np.float32), rng.random((5, 4), np.float32)
    u, y = np.zeros_like(t), np.zeros(4, np.float32)
    probe().shorts(t, u, line, y, threads=(5, 4))
    np.testing.assert_array_equal(u, t + line + line[1])
    np.testing.assert_array_equal(y, t[0, 0])


def test_read_and_write_one_texture(rng):
    t = rng.integers(0, 100, (6, 7, 2)).astype(np.float16)
    expected = 2 * t + 1
    probe().in_place(t, threads=(7, 6))
    np.testing.assert_array_equal(t, expected)


def test_levels(rng):
    texture = mtl.Texture(rng.random((9, 20), np.float32), mipmaps=True)
    sizes, first = np.zeros((7, 4), np.uint32), np.zeros((7, 4), np.float32)
    probe().levels(texture, sizes, threads=7)
    probe().level_of(texture, first, threads=7)
    assert sizes[:, :3].tolist() == [
        [20, 9, 5], [10, 4, 5], [5, 2, 5], [2, 1, 5], [1, 1, 5], [0, 0, 5], [0, 0, 5],
    ]  # fmt: skip
    assert first[:, 0].tolist() == [*(texture.numpy(level).flat[0] for level in range(5)), 0, 0]


def test_atomics():
    t, u, before = np.zeros((3, 4), np.uint32), np.zeros(4, np.int32), np.zeros(1000, np.uint32)
    probe().count(t, u, before, threads=1000)
    assert sorted(before) == list(range(1000))
    assert t.tolist() == [[2**32 - 1, 77, 999, 0], [0, 0, 0, 0], [0, 1000, 0, 0]]
    assert u.tolist() == [-999, -2000, 3000, 5]


def test_views_are_used_in_place(rng):
    """A crop, a flip and every other row of an image."""
    image = rng.integers(0, 255, (20, 30, 4)).astype(np.uint8)
    for view in (np.s_[5:12, 7:19], np.s_[::-1], np.s_[::3, 2:], np.s_[1:2]):
        source, target = image.copy(), image.copy()
        rows, columns = source[view].shape[:2]
        copy = invert().invert
        copy(source[view], target[view], threads=(columns, rows))
        expected = image.copy()
        expected[view] = 255 - image[view]
        np.testing.assert_array_equal(target, expected)
        np.testing.assert_array_equal(source, image)


@functools.cache
def invert():
    return mtl.library(
        HEADER
        + """
kernel void invert(texture2d<half, access::read> in, texture2d<half, access::write> out,
                   uint2 p [[thread_position_in_grid]]) { out.write(1 - in.read(p), p); }
kernel void sum(array<texture2d<float, access::read>, 3> in [[texture(0)]],
                array<texture2d<float, access::write>, 2> out [[texture(3)]],
                texture2d<float> last [[texture(5)]], uint2 p [[thread_position_in_grid]]) {
  float4 all = 0;
  for (uint i = 0; i < in.size(); ++i) all += in[i].read(p);
  out[0].write(all, p);
  out[1].write(last.read(p) - all, p);
}
"""
    )


def test_arrays_of_textures(rng):
    images = [rng.random((4, 6, 2), np.float32) for _ in range(3)]
    last = mtl.Texture(rng.random((4, 6), np.float32))
    outputs = [np.zeros((4, 6, 4), np.float32), np.zeros((4, 6), np.float32)]
    invert().sum(images, outputs, last, threads=(6, 4))
    np.testing.assert_array_equal(outputs[0][..., :2], images[0] + images[1] + images[2])
    np.testing.assert_array_equal(outputs[1], last.numpy() - outputs[0][..., 0])
