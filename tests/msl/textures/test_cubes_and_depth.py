"""Cube textures, gather() and comparisons."""

import functools

import numpy as np
import pytest

import metalloid as mtl

ID = "uint i [[thread_position_in_grid]]"
COMPARISONS = {
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
    "always": lambda a, b: b == b, "never": lambda a, b: b != b, "none": lambda a, b: b != b,
}  # fmt: skip
COUNT = 3000


def test_multisampled_depth_textures():
    lib = mtl.library("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void f(depth2d_ms<float> t, device float* y, uint2 i [[thread_position_in_grid]]) {
      for (uint s = 0; s < t.get_num_samples(); ++s)
        y[(i.y * t.get_width() + i.x) * t.get_num_samples() + s] = t.read(i, s);
    }""")
    texels = np.random.default_rng(0).random((4, 3, 5), np.float32)  # samples, height, width
    y = np.empty((3, 5, 4), np.float32)
    lib.f(texels, y, threads=(5, 3))
    np.testing.assert_array_equal(y, np.moveaxis(texels, 0, -1))


@functools.cache
def kernels():
    return mtl.library(f"""
#include <metal_stdlib>
using namespace metal;
kernel void cube(texturecube<float> t, sampler s, device const packed_float3* r, device float4* y, {ID})
{{ y[i] = t.sample(s, r[i]); }}
kernel void cubes(texturecube_array<float> t, sampler s, device const packed_float3* r,
                  device float* y, {ID})
{{ y[i] = t.sample(s, r[i], i % 2, level(0)).x; }}
kernel void gather_cube(texturecube<float> t, device const packed_float3* r, device float4* y, {ID})
{{ constexpr sampler s; y[i] = t.gather(s, r[i], component::z); }}
kernel void gather2(texture2d<float> t, texture2d_array<int> u, device const float2* at,
                    device float4* y, device int4* z, {ID}) {{
  constexpr sampler s(address::repeat);
  y[i] = t.gather(s, at[i], int2(1, -2), component::y);
  z[i] = u.gather(s, at[i], 1);
}}
kernel void compare(depth2d<float> t, depth2d_array<float> u, sampler s, device const float2* at,
                    device float4* y, {ID}) {{
  y[i] = float4(t.sample_compare(s, at[i], 0.5), u.sample_compare(s, at[i], 1, 0.5),
                t.sample(s, at[i]), u.sample(s, at[i], 1, level(0)));
}}
kernel void gather_compare(depth2d<float> t, depth2d_array<float> u, sampler s,
                           device const float2* at, device float4* y, {ID})
{{ y[2 * i] = t.gather_compare(s, at[i], 0.5); y[2 * i + 1] = u.gather_compare(s, at[i], 0, 0.5); }}
kernel void depth_cube(depthcube<float> t, sampler s, device const packed_float3* r,
                       device float4* y, {ID}) {{
  y[i] = float4(t.sample(s, r[i]), t.sample_compare(s, r[i], 0.5), t.read(uint2(1, 2), 3),
                t.get_width());
}}
kernel void depths(depth2d<float, access::read> t, texture2d<float, access::read> u,
                   device float4* y, uint2 p [[thread_position_in_grid]])
{{ y[p.x + 4 * p.y] = float4(t.read(p), u.read(p).xyz); }}
""")


def faces_of(r):
    """Face and coordinates of directions: the table of the specification."""
    x, y, z = r.T.astype(np.float64)
    a = np.abs(r)
    choose = [
        (a[:, 2] >= a[:, 0]) & (a[:, 2] >= a[:, 1]) & (z >= 0),
        (a[:, 2] >= a[:, 0]) & (a[:, 2] >= a[:, 1]),
        (a[:, 1] >= a[:, 0]) & (y >= 0), a[:, 1] >= a[:, 0], x >= 0, x < 0,
    ]  # fmt: skip
    face = np.select(choose, [4, 5, 2, 3, 0, 1])
    s = np.select(choose, [x, -x, x, x, -z, z])
    t = np.select(choose, [-y, -y, z, -z, -y, -y])
    m = a.max(axis=1)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def directions(rng, n):
    r = rng.normal(0, 1, (COUNT, 3)).astype(np.float32)
    _, s, t = faces_of(r)
    # Not where rounding decides between two texels.
    inner = (np.abs(s * n - np.rint(s * n)) > 1e-3) & (np.abs(t * n - np.rint(t * n)) > 1e-3)
    return r[inner]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_nearest_texel_of_a_cube(n, rng):
    x = rng.random((6, n, n, 4), np.float32)
    r = directions(rng, n)
    y = np.zeros((len(r), 4), np.float32)
    kernels().cube(x, mtl.Sampler(), r, y, threads=len(r))
    face, s, t = faces_of(r)
    np.testing.assert_array_equal(y, x[face, (t * n).astype(int), (s * n).astype(int)])


def test_cube_arrays(rng):
    x = rng.random((2, 6, 4, 4), np.float32)
    r = directions(rng, 4)
    y = np.zeros(len(r), np.float32)
    kernels().cubes(x, mtl.Sampler(), r, y, threads=len(r))
    face, s, t = faces_of(r)
    layer = np.arange(len(r)) % 2
    np.testing.assert_array_equal(y, x[layer, face, (t * 4).astype(int), (s * 4).astype(int)])


def centre_directions(n):
    """Direction to the centre of each texel, (6, n, n, 3), from the table read backwards."""
    along = (2 * np.arange(n) + 1 - n) / n
    t, s = np.meshgrid(along, along, indexing="ij")
    one = np.ones_like(s)
    return np.stack(
        [
            np.stack(axes, -1)
            for axes in (
                (one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one),
            )
        ]
    )  # fmt: skip


@pytest.mark.parametrize("n", [2, 5, 16])
def test_linear_filtering_across_the_edges_of_a_cube(n, rng):
    """A function that is linear on the cube's surface is met well by blending its texels."""
    directions = centre_directions(n)
    x = (directions @ np.float64([0.3, -0.5, 0.2])).astype(np.float32)
    r = rng.normal(0, 1, (COUNT, 3)).astype(np.float32)
    y = np.zeros((COUNT, 4), np.float32)
    kernels().cube(x, mtl.Sampler(filter="linear"), r, y, threads=COUNT)
    on_surface = r / np.abs(r).max(axis=1, keepdims=True)
    expected = on_surface @ np.float64([0.3, -0.5, 0.2])
    _, s, t = faces_of(r)
    inner = (np.abs(s - 0.5) < 0.5 - 0.5 / n) & (np.abs(t - 0.5) < 0.5 - 0.5 / n)
    np.testing.assert_allclose(y[inner, 0], expected[inner], rtol=0, atol=4 * 2**-22)
    # Past an edge the texels turn away: the blend is off by less than the next texel's step.
    assert np.abs(y[:, 0] - expected).max() < 1.0 / n


def test_linear_filtering_uses_the_adjacent_texels_past_each_edge(rng):
    """On an edge exactly, the two texels next to it count equally."""
    n = 4
    x = rng.random((6, n, n), np.float32)
    directions = centre_directions(n).reshape(-1, 3)
    edge = rng.choice([-1.0, 1.0], (200, 3))
    along = rng.integers(0, 3, 200)
    coordinate = (2 * rng.integers(0, n, 200) + 1 - n) / n
    edge[np.arange(200), along] = coordinate
    y = np.zeros((200, 4), np.float32)
    kernels().cube(x, mtl.Sampler(filter="linear"), edge.astype(np.float32), y, threads=200)
    # The two texel centres nearest to a point of an edge are the ones on its two sides.
    distance = np.linalg.norm(directions[None] - edge[:, None], axis=-1)
    nearest = np.argsort(distance, axis=1)[:, :2]
    np.testing.assert_allclose(y[:, 0], x.reshape(-1)[nearest].mean(axis=1), rtol=4 * 2**-22)


def test_gather(rng):
    x = rng.random((5, 6, 4), np.float32)
    layers = rng.integers(0, 99, (3, 5, 6)).astype(np.int32)
    at = rng.uniform(-1, 2, (500, 2)).astype(np.float32)
    texels = at * np.float32([6, 5]) - 0.5
    at = at[(np.abs(texels - np.rint(texels)) > 1e-3).all(axis=1)]
    y, z = np.zeros((len(at), 4), np.float32), np.zeros((len(at), 4), np.int32)
    kernels().gather2(x, layers, at, y, z, threads=len(at))
    i = np.floor(at[:, 0] * 6.0 - 0.5).astype(int)
    j = np.floor(at[:, 1] * 5.0 - 0.5).astype(int)
    order = ((0, 1), (1, 1), (1, 0), (0, 0))  # counter-clockwise from the lower left
    for c, (di, dj) in enumerate(order):
        np.testing.assert_array_equal(y[:, c], x[(j + dj - 2) % 5, (i + di + 1) % 6, 1])
        np.testing.assert_array_equal(z[:, c], layers[1, (j + dj) % 5, (i + di) % 6])


def test_gather_of_a_cube_is_what_is_blended(rng):
    x = np.zeros((6, 4, 4, 4), np.float32)
    x[..., 2] = rng.integers(0, 100, (6, 4, 4))
    r = directions(rng, 4)
    four, nearest = np.zeros((len(r), 4), np.float32), np.zeros((len(r), 4), np.float32)
    kernels().gather_cube(x, r, four, threads=len(r))
    kernels().cube(x, mtl.Sampler(), r, nearest, threads=len(r))
    assert (four == nearest[:, 2:3]).any(axis=1).all()
    face, s, t = faces_of(r)
    inner = (np.abs(s - 0.5) < 0.37) & (np.abs(t - 0.5) < 0.37)
    i, j = np.floor(s * 4 - 0.5).astype(int), np.floor(t * 4 - 0.5).astype(int)
    for c, (di, dj) in enumerate(((0, 1), (1, 1), (1, 0), (0, 0))):
        expected = x[face[inner], (j + dj)[inner], (i + di)[inner], 2]
        np.testing.assert_array_equal(four[inner, c], expected)


@pytest.mark.parametrize("function", COMPARISONS)
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.sample(1, per="function")
def test_comparisons(function, filter, rng):
    t = rng.choice(np.float32([0.25, 0.5, 0.75]), (6, 8))
    u = rng.choice(np.float32([0.25, 0.5, 0.75]), (2, 6, 8))
    at = (rng.integers(0, 32, (400, 2)) / 32 + 1 / 64).astype(np.float32)
    y = np.zeros((400, 4), np.float32)
    sampler = mtl.Sampler(filter=filter, compare_func=function, address="repeat")
    kernels().compare(t, u, sampler, at, y, threads=400)
    for column, depth in ((0, t), (1, u[1])):
        outcome = COMPARISONS[function](np.float32(0.5), depth).astype(np.float64)
        if filter == "nearest":
            expected = outcome[(at[:, 1] * 6).astype(int), (at[:, 0] * 8).astype(int)]
        else:
            i, j = at[:, 0] * 8.0 - 0.5, at[:, 1] * 6.0 - 0.5
            a, b = i - np.floor(i), j - np.floor(j)
            i, j = np.floor(i).astype(int), np.floor(j).astype(int)
            expected = sum(
                w * outcome[(j + dj) % 6, (i + di) % 8]
                for di, dj, w in (
                    (0, 0, (1 - a) * (1 - b)), (1, 0, a * (1 - b)), (0, 1, (1 - a) * b), (1, 1, a * b),
                )
            )  # fmt: skip
        np.testing.assert_allclose(y[:, column], expected, rtol=0, atol=4 * 2**-24)
    four = np.zeros((800, 4), np.float32)
    kernels().gather_compare(t, u, sampler, at, four, threads=400)
    i, j = np.floor(at[:, 0] * 8 - 0.5).astype(int), np.floor(at[:, 1] * 6 - 0.5).astype(int)
    for c, (di, dj) in enumerate(((0, 1), (1, 1), (1, 0), (0, 0))):
        for start, depth in ((0, t), (1, u[0])):
            texel = depth[(j + dj) % 6, (i + di) % 8]
            expected = COMPARISONS[function](np.float32(0.5), texel)
            np.testing.assert_array_equal(four[start::2, c], expected)


def test_depth_cubes(rng):
    x = rng.random((6, 3, 3), np.float32)
    r = directions(rng, 3)
    y = np.zeros((len(r), 4), np.float32)
    kernels().depth_cube(x, mtl.Sampler(compare_func="less"), r, y, threads=len(r))
    face, s, t = faces_of(r)
    texel = x[face, (t * 3).astype(int), (s * 3).astype(int)]
    np.testing.assert_array_equal(y[:, 0], texel)
    np.testing.assert_array_equal(y[:, 1], texel > 0.5)
    assert (y[:, 2] == x[3, 2, 1]).all()
    assert (y[:, 3] == 3).all()


@pytest.mark.parametrize("format", ["depth32float", "depth16unorm"])
def test_depth_formats_are_read_by_both_families(format, rng):
    texels = rng.integers(0, 2**16, (3, 4)).astype(np.uint16)
    if format == "depth32float":
        texels = (texels / 65535).astype(np.float32)
    texture = mtl.Texture(texels, format)
    y = np.zeros((3, 4, 4), np.float32)
    kernels().depths(texture, texture, y, threads=(4, 3))
    values = texels if texels.dtype.kind == "f" else (texels / 65535).astype(np.float32)
    np.testing.assert_array_equal(y, np.stack([values, values, 0 * values, 0 * values], -1))
