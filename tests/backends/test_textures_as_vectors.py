"""Texture functions as vector code: the reference engine's bits, for whatever is bound."""

import functools

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu import known_textures
from metalloid.runtime.pixel_formats import FORMATS

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint2 p [[thread_position_in_grid]]"
#: Of the grid: rows of whole simdgroups and a rest.
WIDTH, HEIGHT = 75, 6
TEXELS = (5, 37)
ELEMENTS = {"f": ("float", np.float32), "i": ("int", np.int32), "u": ("uint", np.uint32)}
ADDRESSES = ("clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat", "clamp_to_border")


@pytest.fixture(params=[0, 2**40], ids=["known", "unknown"])
def is_known(request, monkeypatch):
    """Launches get variants for their textures, or none do."""
    monkeypatch.setattr(known_textures, "FEW_THREADS", request.param)
    monkeypatch.setattr(known_textures, "MAX_VARIANTS", 1000)
    return request.param == 0


@functools.cache
def library(text, engine):
    with mtl.config.scope(cpu_engine=engine):
        return mtl.library(HEADER + text)


def results(text, name, arguments, output, threads=(WIDTH, HEIGHT)):
    """What either engine makes of a kernel whose last argument is its output, an array or texture."""
    found = []
    for engine in ("simd", "reference"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = getattr(library(text, engine), name)
            made = output()
            kernel(*arguments, made, threads=threads)
            assert kernel.engine.startswith(engine), kernel.engine
            found.append(made.numpy() if isinstance(made, mtl.Texture) else made)
    return found


def agreed(*given, **named):
    """The result, which is the same bit for bit."""
    vector, reference = results(*given, **named)
    np.testing.assert_array_equal(vector.view(np.uint8), reference.view(np.uint8))
    return vector


def texels_of(name, rng, shape=TEXELS):
    """A texture of random bits, without those that are no numbers."""
    info = FORMATS[name]
    shape = (*shape, info.channels) if info.channels > 1 else shape
    if info.dtype.kind == "f":
        return rng.normal(0, 1, shape).astype(info.dtype)
    bounds = np.iinfo(info.dtype)
    return rng.integers(bounds.min, bounds.max, shape, info.dtype, endpoint=True)


def decoded(texels, name):
    """(..., 4) of what a format stands for, in float64 or integers."""
    info = FORMATS[name]
    values = texels.reshape(*texels.shape[:2], info.channels)
    if info.component.endswith("norm"):
        values = np.maximum(values / np.float64(np.iinfo(info.dtype).max), -1)
    full = np.zeros((*values.shape[:2], 4), values.dtype)
    full[..., 3] = 1
    full[..., : info.channels] = values
    if name.startswith("bgra"):
        full = full[..., [2, 1, 0, 3]]
    if info.is_srgb:
        c = full[..., :3]
        full[..., :3] = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return full


ACCESSES = "".join(
    f"""
kernel void read_{t}(texture2d<{t}, access::read> t, device {t}4* y, {ID})
{{ y[p.x + p.y * {WIDTH}] = t.read(p); }}
kernel void read_anywhere_{t}(texture2d<{t}, access::read> t, device {t}4* y, {ID})
{{ y[p.x + p.y * {WIDTH}] = t.read(uint2(7 * p.x * p.x % 41, (p.x + p.y) % 7)); }}
kernel void write_{t}(texture2d<{t}, access::read> t, texture2d<{t}, access::write> y, {ID})
{{ y.write(t.read(p), p); }}
kernel void write_turned_{t}(texture2d<{t}, access::read> t, texture2d<{t}, access::write> y, {ID})
{{ y.write(t.read(p), t.get_width() - 1 - p.x < 0x7fffffff ? uint2(t.get_width() - 1 - p.x, p.y) : p); }}
"""
    for t in ("float", "int", "uint")
)


@pytest.mark.parametrize("name", FORMATS)
def test_reads_of_each_format(name, rng, is_known):
    info, texels = FORMATS[name], texels_of(name, rng)
    texture = mtl.Texture(texels, name)
    element, dtype = ELEMENTS[info.element_kind]
    full = decoded(texels, name)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for kernel, (row, column) in (
        ("read", (y, x)), ("read_anywhere", ((x + y) % 7, 7 * x * x % 41)),
    ):  # fmt: skip
        got = agreed(
            ACCESSES, f"{kernel}_{element}", (texture,), lambda: np.zeros((HEIGHT, WIDTH, 4), dtype)
        )
        is_inside = (row < TEXELS[0]) & (column < TEXELS[1])
        at = np.where(is_inside, row, 0), np.where(is_inside, column, 0)
        wanted = np.where(is_inside[..., None], full[at], 0)
        tolerance = 1e-6 if info.is_srgb else 2**-24
        np.testing.assert_allclose(got, wanted, rtol=tolerance)


@pytest.mark.parametrize("name", FORMATS)
def test_writes_of_each_format(name, rng, is_known):
    texels = texels_of(name, rng)
    if FORMATS[name].component.endswith("snorm"):  # two codes stand for -1
        texels = np.maximum(texels, -np.iinfo(texels.dtype).max)
    texture = mtl.Texture(texels, name)
    element, _ = ELEMENTS[FORMATS[name].element_kind]
    for kernel, wanted in (("write", texels), ("write_turned", texels[:, ::-1])):
        got = agreed(ACCESSES, f"{kernel}_{element}", (texture,), lambda: mtl.Texture(TEXELS, name))
        np.testing.assert_array_equal(got, wanted)


SAMPLING = f"""
kernel void sample(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  y[p.x + p.y * {WIDTH}] = t.sample(s, at, int2(1, -2));
}}
kernel void sample_uint(texture2d<uint> t, sampler s, device uint4* y, {ID})
{{ const float2 at = s_at; y[p.x + p.y * {WIDTH}] = t.sample(s, at); }}
kernel void levels(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  float4 sum = t.sample(s, at, level(float(p.x) / 16));
  sum += t.sample(s, at, bias(float(p.y) / 4));
  sum += t.sample(s, at, gradient2d(float2(p) / 640, float2(0.01f)), min_lod_clamp(1));
  y[p.x + p.y * {WIDTH}] = sum;
}}
kernel void gathered(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  y[p.x + p.y * {WIDTH}] = t.gather(s, at) + 10 * t.gather(s, at, int2(-1, 1), component::w);
}}
kernel void compared(depth2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  y[p.x + p.y * {WIDTH}] =
      float4(t.sample_compare(s, at, 0.5f), t.sample(s, at), t.gather_compare(s, at, 0.5f).xy);
}}
""".replace("s_at", "(float2(p) * float2(0.04f, 0.6f) - 1.1f) * SCALE")


@functools.cache
def sampling(is_pixel):
    scale = f"float2({TEXELS[1]}, {TEXELS[0]})" if is_pixel else "float2(1)"
    return SAMPLING.replace("SCALE", scale)


def positions(is_pixel):
    """Where the kernels sample, in texels."""
    p = np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)), -1).astype(np.float32)
    at = (p * np.float32([0.04, 0.6]) - np.float32(1.1)) * np.float32(
        TEXELS[::-1] if is_pixel else 1
    )
    return at if is_pixel else at * np.float32(TEXELS[::-1])


def indices(at, size, mode):
    """Texels along an axis in float64, and whether they are inside."""
    i = np.floor(at).astype(int)
    if mode == "repeat":
        return i % size, np.ones(i.shape, bool)
    if mode == "mirrored_repeat":
        i %= 2 * size
        return np.where(i < size, i, 2 * size - 1 - i), np.ones(i.shape, bool)
    inside = (0 <= i) & (i < size)
    return np.clip(i, 0, size - 1), inside | (mode == "clamp_to_edge")


def sampled(full, at, mode, is_linear, outside):
    """(..., 4) samples at texel coordinates."""
    x, y = at[..., 0].astype(np.float64), at[..., 1].astype(np.float64)
    total = np.zeros((*x.shape, 4))
    x, y = (x - 0.5, y - 0.5) if is_linear else (x, y)
    fx, fy = x - np.floor(x), y - np.floor(y)
    for dy in (0, 1) if is_linear else (0,):
        for dx in (0, 1) if is_linear else (0,):
            column, in_row = indices(x + dx, full.shape[1], mode)
            row, in_column = indices(y + dy, full.shape[0], mode)
            inside = (in_row & in_column)[..., None]
            weight = (fx if dx else 1 - fx) * (fy if dy else 1 - fy) if is_linear else 1
            total += np.where(inside, full[row, column], outside) * np.expand_dims(weight, -1)
    return total


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("name", ["rgba8unorm", "bgra8unorm_srgb", "r8unorm", "rg16snorm", "rgba16float", "rgba32float"])  # fmt: skip
@pytest.mark.parametrize("coord", ["normalized", "pixel"])
def test_samples(coord, name, filter, address, rng, is_known):
    if coord == "pixel" and "repeat" in address:
        pytest.skip("Metal has no repeating pixel coordinates")
    if coord == "pixel" and name not in ("rgba8unorm", "r8unorm"):
        pytest.skip("one format has told")
    texels = texels_of(name, rng)
    sampler = mtl.Sampler(
        coord=coord, filter=filter, address=address, border_color="opaque_white"
    )
    got = agreed(
        sampling(coord == "pixel"), "sample", (mtl.Texture(texels, name), sampler),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.float32),
    )  # fmt: skip
    outside = {"clamp_to_border": 1.0}.get(address, 0.0)
    border = np.full(4, outside)
    if FORMATS[name].channels < 4 and address == "clamp_to_zero":
        border[3] = 1
    at = positions(coord == "pixel") + np.float32([1, -2])
    wanted = sampled(decoded(texels, name), at, address, filter == "linear", border)
    near_an_edge = np.abs(at - np.rint(at)).min(-1) < 1e-3  # of a texel
    wrong = np.abs(got - wanted).max(-1) > 2e-4 * max(1, np.abs(wanted).max())
    assert not (wrong & ~(near_an_edge & (filter == "nearest"))).any()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("name", ["rgba8uint", "r16uint", "rg32uint"])
def test_samples_of_integers(name, address, rng, is_known):
    sampler = mtl.Sampler(address=address)
    texels = texels_of(name, rng)
    got = agreed(
        sampling(False), "sample_uint", (mtl.Texture(texels, name), sampler),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.uint32),
    )  # fmt: skip
    at = positions(False)
    border = np.array([0, 0, 0, FORMATS[name].channels < 4 and address == "clamp_to_zero"])
    wanted = sampled(decoded(texels, name), at, address, False, border)
    is_clear = np.abs(at - np.rint(at)).min(-1) > 1e-3
    np.testing.assert_array_equal(got[is_clear], wanted[is_clear])


@pytest.mark.parametrize("mip_filter", ["none", "nearest", "linear"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("reduction", ["weighted_average", "maximum"])
def test_levels_of_detail(mip_filter, filter, reduction, rng, is_known):
    texture = mtl.Texture(texels_of("rgba8unorm", rng), mipmaps=True)
    sampler = mtl.Sampler(
        filter=filter, mip_filter=mip_filter, address="repeat", reduction=reduction, lod_bias=0.25
    )
    agreed(
        sampling(False), "levels", (texture, sampler),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("name", ["rgba8unorm", "r16float"])
def test_gathers(name, address, rng, is_known):
    agreed(
        sampling(False), "gathered",
        (mtl.Texture(texels_of(name, rng), name), mtl.Sampler(address=address)),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("compare", ["less", "greater_equal", "always", "never"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("name", ["depth32float", "depth16unorm"])
def test_comparisons(name, filter, compare, rng, is_known):
    agreed(
        sampling(False), "compared",
        (
            mtl.Texture(texels_of(name, rng), name),
            mtl.Sampler(filter=filter, compare_func=compare, address="clamp_to_edge"),
        ),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.float32),
    )  # fmt: skip
