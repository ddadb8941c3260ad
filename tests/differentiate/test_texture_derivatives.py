"""Derivatives of reads, samples and writes of textures agree with complex steps of NumPy's."""

import itertools

import numpy as np
import pytest

import metalloid as mtl
from metalloid.errors import ArgumentError, CompileError

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def wrapped(address, i, size):
    if address in ("clamp_to_edge", None):
        return min(max(i, 0), size - 1)
    if address == "repeat":
        return i % size
    if address == "mirrored_repeat":
        return min(i % (2 * size), 2 * size - 1 - i % (2 * size))
    return i if 0 <= i < size else None


def sampled(texels, coords, address="clamp_to_edge", linear=True, pixel=False, offset=None,
            border=0):  # fmt: skip
    """A sample of an array of ``(..., y, x, channels)`` at coordinates x, y, z."""
    sizes = texels.shape[-2::-1]
    axes = []
    addresses = [address] * 3 if isinstance(address, str) else address
    for k, (u, size) in enumerate(zip(coords, sizes, strict=False)):
        u = u if pixel else u * size
        first = int(np.floor(u.real - (0.5 if linear else 0)))
        weight = u - 0.5 - first if linear else 0
        i = [first + n + (0 if offset is None else offset[k]) for n in (0, 1)]
        pairs = zip(i, (1 - weight, weight), strict=True)
        axes.append([(wrapped(addresses[k], n, size), w) for n, w in pairs])
    total = np.zeros(texels.shape[-1], complex)
    for corner in itertools.product(*axes):
        weight = np.prod([w for _, w in corner])
        index = tuple(i for i, _ in corner)[::-1]
        total = total + weight * (border if None in index else texels[index])
    return total


def texels_of(value):
    """An array, or the texels of all levels of a texture."""
    if not isinstance(value, mtl.Texture):
        return np.asarray(value)
    levels = [value.numpy(level=k) for k in range(value.levels)]
    channels = levels[0].shape[-1] if levels[0].ndim > len(value.shape) else 1
    return np.concatenate([level.reshape(-1, channels) for level in levels])


def check(kernel, arguments, function, wrt, threads, bound=2e-6, seed=0):
    """Adjoint and tangent of a kernel whose output is y, by complex steps of a function.

    The function returns y from complex arrays of the inputs in `wrt`.
    """
    random = np.random.default_rng(seed)
    inputs = {name: texels_of(arguments[name]).astype(np.complex128) for name in wrt}
    seed_y = random.normal(size=np.shape(arguments["y"])).astype(np.float32)
    names = [p.name for p in kernel.signature.arguments]
    adjoint, tangent = kernel.vjp(wrt, ["y"]), kernel.jvp(wrt, ["y"])
    dots = {n: random.normal(size=v.shape).astype(np.float32) for n, v in inputs.items()}
    given = [arguments[name] for name in names]
    shadows = {n: np.zeros(v.shape, np.float32) for n, v in inputs.items()}
    adjoint(*given, seed_y, *(shadows[n] for n in adjoint.wrt), threads=threads)
    dot_y = np.zeros_like(seed_y)
    tangent(*given, *(dots[n] for n in tangent.wrt), dot_y, threads=threads)
    step = 1e-30
    expected = function(**{n: v + 1j * step * dots[n] for n, v in inputs.items()})
    expected = expected.imag.reshape(dot_y.shape) / step
    assert np.abs(dot_y - expected).max() <= bound * np.abs(expected).max()
    for name, value in inputs.items():
        right = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            moved = value.copy()
            moved[index] += 1j * step
            result = function(**{**inputs, name: moved}).imag.reshape(seed_y.shape) / step
            right[index] = (result * seed_y).sum()
        assert np.abs(right).max() > 0
        assert np.abs(shadows[name] - right).max() <= bound * np.abs(right).max(), name


def points(count, axes, low=-0.7, high=1.7, seed=1):
    return np.random.default_rng(seed).uniform(low, high, (count, axes)).astype(np.float32)


def image(*shape, seed=2):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


SAMPLERS = [
    {"filter": "linear"},
    {"filter": "linear", "address": "repeat", "mip_filter": "linear"},
    {"filter": "linear", "address": "mirrored_repeat", "mip_filter": "nearest"},
    {"filter": "linear", "address": "clamp_to_zero", "coord": "pixel"},
    {"filter": "linear", "address": "clamp_to_border", "border_color": "opaque_white",
     "mip_filter": "linear"},
    {"address": "repeat", "mip_filter": "linear"},
    {"mag_filter": "linear", "s_address": "repeat", "t_address": "mirrored_repeat",
     "mip_filter": "linear"},
]  # fmt: skip


@pytest.fixture(scope="module")
def with_levels():
    source = f"""{HEAD}
    kernel void k(texture2d<float> t, sampler s, device const packed_float3 *p, device float4 *y,
                  uint i [[thread_position_in_grid]]) {{
      y[i] = t.sample(s, float2(p[i].xy), level(p[i].z), int2(1, -2)) * p[i].x;
    }}"""
    return mtl.library(source, device="cpu").k


@pytest.mark.parametrize("settings", SAMPLERS)
def test_samplers_of_launches(with_levels, settings):
    texture = mtl.Texture(image(4, 6, 4), mipmaps=2, device="cpu")
    at = points(6, 3)
    if settings.get("coord") == "pixel":
        at[:, :2] *= 4
    options = {
        "pixel": settings.get("coord") == "pixel",
        "border": settings.get("border_color") == "opaque_white",
    }

    def function(t, p):
        levels = t[:24].reshape(4, 6, 4), t[24:].reshape(2, 3, 4)
        rows = []
        for x, y, lod in p:
            kind = "min_filter" if lod.real > 0 else "mag_filter"
            linear = settings.get(kind, settings.get("filter", "nearest")) == "linear"

            def look(level, at=(x, y), linear=linear):
                addresses = [settings.get(f"{k}_address", settings.get("address")) for k in "st"]
                return sampled(levels[level], at, addresses, linear, offset=(1, -2), **options)

            level = min(max(lod, 0, key=lambda v: v.real), 1, key=lambda v: v.real)
            mip = settings.get("mip_filter", "none")
            if mip == "none":
                value = look(0)
            elif mip == "nearest":
                value = look(int(level.real + 0.5))
            else:
                value = look(0) * (1 - level) + look(1) * level
            rows.append(value * x)
        return np.array(rows)

    arguments = {"t": texture, "s": mtl.Sampler(**settings), "p": at}
    arguments["y"] = np.zeros((6, 4), np.float32)
    check(with_levels, arguments, function, ["t", "p"], 6)


@pytest.mark.slow
def test_samplers_of_the_text():
    source = f"""{HEAD}
    constexpr sampler outside(filter::linear, address::repeat);
    static float4 look(texture2d<float> t, sampler s, float2 at) {{ return t.sample(s, at); }}
    kernel void k(texture2d<float> t, device const float2 *p, device float4 *y,
                  uint i [[thread_position_in_grid]]) {{
      constexpr sampler nearest, s(coord::pixel, filter::linear, t_address::mirrored_repeat);
      y[4 * i] = look(t, outside, p[i]);
      for (int k = 1; k < 3; k++) y[4 * i + k] = look(t, s, 3 * y_of(p[i], k));
      y[4 * i + 3] = look(t, nearest, p[i]) * p[i].x;
    }}""".replace("y_of(p[i], k)", "k * p[i]")

    def function(t, p):
        rows = []
        for u in p:
            rows.append(sampled(t, u, "repeat"))
            mixed = ("clamp_to_edge", "mirrored_repeat")
            rows += [sampled(t, 3 * k * u, mixed, pixel=True) for k in (1, 2)]
            rows.append(sampled(t, u, linear=False) * u[0])
        return np.array(rows)

    arguments = {"t": image(5, 7, 4), "p": points(9, 2), "y": np.zeros((36, 4), np.float32)}
    kernel = mtl.library(source, device="cpu").k
    check(kernel, arguments, function, ["t", "p"], 9)


@pytest.mark.slow
def test_axes_arrays_and_depth():
    source = f"""{HEAD}
    kernel void k(texture3d<float> a, texture1d_array<float> b, depth2d<float> c,
                  texture2d<float> d, device const float *p, device float4 *y,
                  uint i [[thread_position_in_grid]]) {{
      constexpr sampler s(filter::linear);
      float3 u = float3(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
      y[4 * i] = a.sample(s, u, int3(1, 0, -1));
      y[4 * i + 1] = b.sample(s, u.y, i % 3);
      y[4 * i + 2] = float4(c.sample(s, u.xz) * u, 0);
      y[4 * i + 3] = d.gather(s, u.yz, int2(1, 0), component::z);
    }}"""
    arguments = {
        "a": image(2, 3, 4, 4), "b": image(3, 5, 4), "c": image(4, 3), "d": image(3, 5, 4),
        "p": points(6, 3).ravel(), "y": np.zeros((24, 4), np.float32),
    }  # fmt: skip

    def gathered(d, at):
        i, j = (int(np.floor(u.real * n - 0.5)) for u, n in zip(at, (5, 3), strict=True))
        corners = [(0, 1), (1, 1), (1, 0), (0, 0)]
        return [
            d[wrapped("clamp_to_edge", j + y, 3), wrapped("clamp_to_edge", i + 1 + x, 5), 2]
            for x, y in corners
        ]

    def function(a, b, c, d, p):
        rows = []
        for i, u in enumerate(p.reshape(-1, 3)):
            rows.append(sampled(a, u, offset=(1, 0, -1)))
            rows.append(sampled(b[i % 3], u[1:2]))
            rows.append([*(sampled(c[..., None], u[::2]) * u), 0])
            rows.append(gathered(d, u[1:]))
        return np.array(rows)

    kernel = mtl.library(source, device="cpu").k
    check(kernel, arguments, function, [*"abcd", "p"], 6)


@pytest.mark.slow
@pytest.mark.parametrize("more", [0, 1], ids=["inside", "reads_outside"])
def test_reads_and_a_write(more):
    source = f"""{HEAD}
    kernel void k(texture1d<float> a, texture2d_array<float> b, texturecube<float> c,
                  texture2d_ms<float> d, texture3d<half> e, device float4 *y,
                  uint2 at [[thread_position_in_grid]]) {{
      float4 sum = a.read(at.x) * a.read(at.x + {more}) + b.read(at, 1) * b.read(ushort2(at), 0);
      sum += c.read(at, 5) * c.read(at, 2) + d.read(at, 1) * d.read(at, 3);
      y[at.y * 3 + at.x] = sum + float4(e.read(uint3(at, 1)) * e.read(uint3(at, at.x % {2 + more})));
    }}"""
    arguments = {
        "a": image(3, 4), "b": image(2, 3, 3, 4),
        "c": mtl.Texture(image(6, 3, 3, 4), kind="cube", device="cpu"),
        "d": mtl.Texture(image(4, 3, 3, 4), kind="2d_ms", device="cpu"),
        "e": image(2, 3, 4, 4).astype(np.float16), "y": np.zeros((9, 4), np.float32),
    }  # fmt: skip

    def function(a, b, c, d, e):
        c, d = c.reshape(6, 3, 3, 4), d.reshape(4, 3, 3, 4)
        rows = []
        for y, x in np.ndindex(3, 3):
            z = x % (2 + more)
            total = a[x] * (a[x + more] if x + more < 3 else 0) + b[1, y, x] * b[0, y, x]
            total = total + c[5, y, x] * c[2, y, x] + d[1, y, x] * d[3, y, x]
            rows.append(total + e[1, y, x] * (e[z, y, x] if z < 2 else 0))
        return np.array(rows)

    kernel = mtl.library(source, device="cpu").k
    check(kernel, arguments, function, [*"abcde"], (3, 3), bound=1e-3)


def test_writes():
    source = f"""{HEAD}
    kernel void k(texture2d<float> t, texture2d<float, access::write> y,
                  uint2 at [[thread_position_in_grid]]) {{
      if (at.x >= y.get_width() || at.y >= y.get_height()) return;
      y.write(float4(1), at);
      float4 v = t.read(at);
      y.write(v * v.yxzw, at);
    }}"""
    kernel = mtl.library(source, device="cpu").k
    adjoint, tangent = kernel.vjp(), kernel.jvp()
    assert (adjoint.wrt, adjoint.outputs, adjoint.consumed) == (("t",), ("y",), (True,))
    t, d_y, dot_t = image(3, 5, 4), image(3, 5, 4, seed=3), image(3, 5, 4, seed=4)
    y, d_t, dot_y = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    threads = (8, 4)  # more than texels
    adjoint(t, y, d_y, d_t, threads=threads)
    swapped = t[..., [1, 0, 2, 3]]
    expected = d_y * swapped
    expected = expected + (d_y * t)[..., [1, 0, 2, 3]]
    np.testing.assert_allclose(d_t, expected, rtol=1e-6)
    tangent(t, y, dot_t, dot_y, threads=threads)
    np.testing.assert_allclose(y, t * swapped, rtol=1e-6)
    np.testing.assert_allclose(
        dot_y, dot_t * swapped + t * dot_t[..., [1, 0, 2, 3]], rtol=1e-5, atol=1e-6
    )


REFUSED = {
    "y[i] = d.sample_compare(s, p[i], 0.5f);": "depth2d::sample_compare has no derivative here",
    "y[i] = t.sample(s, p[i], gradient2d(p[i], p[i])).x;": "with gradient2d",
    "y[i] = c.sample(s, float3(p[i], 1)).x;": "texturecube::sample has no derivative here",
    "constexpr sampler b(lod_bias(1.0f)); y[i] = t.sample(b, p[i]).x;": "samples with lod_bias",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body):
    source = f"""{HEAD}
    kernel void k(texture2d<float> t, depth2d<float> d, texturecube<float> c,
                  device const float2 *p, device float *y, uint i [[thread_position_in_grid]]) {{
      constexpr sampler s(filter::linear, compare_func::less);
      {body}
    }}"""
    with pytest.raises(CompileError, match=REFUSED[body]) as error:
        mtl.library(source, device="cpu").k.vjp()
    assert body in str(error.value)


def test_settings_of_a_launch_without_a_derivative(with_levels):
    arguments = (image(4, 6, 4), mtl.Sampler(lod_bias=1), points(1, 3), np.zeros((1, 4), "f"))
    shadows = np.zeros((1, 4), "f"), np.zeros((4, 6, 4), "f"), np.zeros((1, 3), "f")
    with pytest.raises(ArgumentError, match="samples with lod_bias have no derivative"):
        with_levels.vjp()(*arguments, *shadows, threads=1)


def test_derivatives_have_memory_for_all_texels(with_levels):
    texture = mtl.Texture(image(4, 6, 4), mipmaps=2, device="cpu")
    arguments = (texture, mtl.Sampler(), points(1, 3), np.zeros((1, 4), "f"))
    shadows = np.zeros((1, 4), "f"), np.zeros((4, 6, 4), "f"), np.zeros((1, 3), "f")
    with pytest.raises(ArgumentError, match="the derivative of 't' has 480 bytes, got 384"):
        with_levels.vjp()(*arguments, *shadows, threads=1)
