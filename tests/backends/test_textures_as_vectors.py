"""Texture functions as vector code: the reference engine's bits, for whatever is bound."""

import functools

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import texture_specialization
from metalloid.runtime.textures.pixel_formats import FORMATS

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint2 p [[thread_position_in_grid]]"
#: Of the grid: rows of whole simdgroups and a rest.
WIDTH, HEIGHT = 75, 6
TEXELS = (5, 37)
ELEMENTS = {"f": ("float", np.float32), "i": ("int", np.int32), "u": ("uint", np.uint32)}
ADDRESSES = ("clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat", "clamp_to_border")


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


#: Small launches of other tests do not know their textures, too.
@pytest.fixture(params=[0, pytest.param(2**40, marks=pytest.mark.slow)], ids=["known", "unknown"])
def is_known(request, monkeypatch):
    """Launches get variants for their textures, or none do."""
    monkeypatch.setattr(texture_specialization, "FEW_THREADS", request.param)
    monkeypatch.setattr(texture_specialization, "MAX_VARIANTS", 1000)
    return request.param == 0


@functools.cache
def library(text, engine):
    with mtl.config.scope(cpu_engine=engine):
        return mtl.library(HEADER + text)


def agreed(text, name, arguments, *outputs):
    """The outputs (the last arguments) of a kernel, which have the same bits by both engines."""
    results = {}
    for engine in ("simd", "reference"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = getattr(library(text, engine), name)
            targets = [output() for output in outputs]
            kernel(*arguments, *targets, threads=(WIDTH, HEIGHT))
            assert kernel.engine.startswith(engine), kernel.engine
            results[engine] = [y.numpy() if isinstance(y, mtl.Texture) else y for y in targets]
    for vector, reference in zip(*results.values(), strict=True):
        np.testing.assert_array_equal(vector.view(np.uint8), reference.view(np.uint8))
    return results["simd"]


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
kernel void access_{t}(texture2d<{t}, access::read> t, device {t}4* y, device {t}4* anywhere,
                       texture2d<{t}, access::write> same, texture2d<{t}, access::write> turned, {ID})
{{
  const uint i = p.x + p.y * {WIDTH};
  y[i] = t.read(p);
  anywhere[i] = t.read(uint2(7 * p.x * p.x % 41, (p.x + p.y) % 7));
  same.write(t.read(p), p);
  turned.write(t.read(p), uint2(t.get_width() - 1 - p.x, p.y));
}}
"""
    for t in ("float", "int", "uint")
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.sample(2)
def test_access_to_each_format(name, rng, is_known):
    info, texels = FORMATS[name], texels_of(name, rng)
    if info.component.endswith("snorm"):  # two codes stand for -1
        texels = np.maximum(texels, -np.iinfo(texels.dtype).max)
    element, dtype = ELEMENTS[info.element_kind]
    values, texture = (
        (lambda: np.zeros((HEIGHT, WIDTH, 4), dtype)),
        lambda: mtl.Texture(TEXELS, name),
    )
    read, anywhere, same, mirrored = agreed(
        ACCESSES,
        f"access_{element}",
        (mtl.Texture(texels, name),),
        values,
        values,
        texture,
        texture,
    )
    full, (row, column) = decoded(texels, name), np.mgrid[:HEIGHT, :WIDTH]
    for got, x, y in (
        (read, column, row),
        (anywhere, 7 * column * column % 41, (column + row) % 7),
    ):
        is_inside = (y < TEXELS[0]) & (x < TEXELS[1])
        expected = np.where(is_inside[..., None], full[y * is_inside, x * is_inside], 0)
        np.testing.assert_allclose(got, expected, rtol=1e-6 if info.is_srgb else 2**-24)
    np.testing.assert_array_equal(same, texels)
    np.testing.assert_array_equal(mirrored, texels[:, ::-1])


SAMPLING = f"""
kernel void sample(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  y[p.x + p.y * {WIDTH}] = t.sample(s, at, int2(1, -2));
}}
kernel void sample_uint(texture2d<uint> t, sampler s, device uint4* y, {ID})
{{ const float2 at = s_at; y[p.x + p.y * {WIDTH}] = t.sample(s, at); }}
kernel void levels(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  const float4 sum = t.sample(s, at, level(float(p.x) / 16));
  y[p.x + p.y * {WIDTH}] = sum + t.sample(s, at, bias(float(p.y) / 4));
}}
kernel void gradients(texture2d<float> t, sampler s, device float4* y, {ID}) {{
  const float2 at = s_at;
  y[p.x + p.y * {WIDTH}] = t.sample(s, at, gradient2d(float2(p) / 640, float2(0.01f)), min_lod_clamp(1));
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
    inside = (i >= 0) & (i < size)
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


def values():
    return np.zeros((HEIGHT, WIDTH, 4), np.float32)


def check_samples(name, filter, address, coord, rng):
    texels, is_pixel = texels_of(name, rng), coord == "pixel"
    sampler = mtl.Sampler(coord=coord, filter=filter, address=address, border_color="opaque_white")
    [got] = agreed(sampling(is_pixel), "sample", (mtl.Texture(texels, name), sampler), values)
    border = np.full(4, float(address == "clamp_to_border"))
    if FORMATS[name].channels < 4 and address == "clamp_to_zero":
        border[3] = 1
    at = positions(is_pixel) + np.float32([1, -2])
    expected = sampled(decoded(texels, name), at, address, filter == "linear", border)
    is_close = np.abs(got - expected).max(-1) < 2e-4 * max(1, np.abs(expected).max())
    # Where rounding decides between two texels, the nearest may be either.
    is_doubtful = (filter == "nearest") & (np.abs(at - np.rint(at)).min(-1) < 1e-3)
    assert (is_close | is_doubtful).all()


@pytest.mark.parametrize(
    ("name", "filter", "address", "coord"),
    [
        ("rgba8unorm", "linear", "clamp_to_edge", "normalized"),
        slow("rgba8unorm", "linear", "clamp_to_border", "pixel"),
        ("rgba8unorm", "nearest", "mirrored_repeat", "normalized"),
        ("bgra8unorm_srgb", "linear", "mirrored_repeat", "normalized"),
        ("r8unorm", "linear", "clamp_to_zero", "normalized"),
        ("r8unorm", "nearest", "clamp_to_edge", "pixel"),
        slow("rg16snorm", "linear", "repeat", "normalized"),
        ("rg16snorm", "nearest", "clamp_to_border", "normalized"),
        slow("r16unorm", "linear", "clamp_to_edge", "normalized"),
        ("rgba16float", "linear", "clamp_to_edge", "normalized"),
        slow("rgba32float", "linear", "clamp_to_zero", "normalized"),
        slow("r32float", "nearest", "repeat", "normalized"),
    ],
)
@pytest.mark.sample(1)
def test_samples(name, filter, address, coord, rng, is_known):
    check_samples(name, filter, address, coord, rng)


@pytest.mark.slow
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].element_kind == "f"])
def test_samples_of_each_format(name, filter, address, rng, is_known):
    check_samples(name, filter, address, "normalized", rng)


@pytest.mark.parametrize(
    ("name", "address"),
    [("rgba8uint", "repeat"), ("r16uint", "clamp_to_zero"), ("rg32uint", "clamp_to_edge")],
)
@pytest.mark.sample(1)
def test_samples_of_integers(name, address, rng, is_known):
    texels, sampler = texels_of(name, rng), mtl.Sampler(address=address)
    [got] = agreed(
        sampling(False), "sample_uint", (mtl.Texture(texels, name), sampler),
        lambda: np.zeros((HEIGHT, WIDTH, 4), np.uint32),
    )  # fmt: skip
    at = positions(False)
    border = np.array([0, 0, 0, FORMATS[name].channels < 4 and address == "clamp_to_zero"])
    expected = sampled(decoded(texels, name), at, address, False, border)
    is_clear = np.abs(at - np.rint(at)).min(-1) > 1e-3
    np.testing.assert_array_equal(got[is_clear], expected[is_clear])


@pytest.mark.parametrize(
    ("filter", "mip_filter", "reduction"),
    [
        ("linear", "linear", "weighted_average"), ("linear", "linear", "maximum"),
        slow("linear", "nearest", "weighted_average"), slow("nearest", "linear", "weighted_average"),
    ],
)  # fmt: skip
@pytest.mark.sample(1)
def test_levels_of_detail(filter, mip_filter, reduction, rng, is_known):
    texture = mtl.Texture(texels_of("rgba8unorm", rng), mipmaps=True)
    sampler = mtl.Sampler(
        filter=filter, mip_filter=mip_filter, address="repeat", reduction=reduction, lod_bias=0.25
    )
    agreed(sampling(False), "levels", (texture, sampler), values)


@pytest.mark.slow
def test_gradients_with_a_limit_of_the_level(rng, is_known):
    texture = mtl.Texture(texels_of("rgba8unorm", rng), mipmaps=True)
    sampler = mtl.Sampler(filter="linear", mip_filter="linear", address="repeat", lod_bias=0.25)
    agreed(sampling(False), "gradients", (texture, sampler), values)


@pytest.mark.parametrize(
    ("name", "address"), [("rgba8unorm", "clamp_to_edge"), ("r16float", "clamp_to_border")]
)
@pytest.mark.sample(1)
def test_gathers(name, address, rng, is_known):
    texture = mtl.Texture(texels_of(name, rng), name)
    agreed(sampling(False), "gathered", (texture, mtl.Sampler(address=address)), values)


@pytest.mark.parametrize(
    ("name", "filter", "compare"),
    [("depth32float", "linear", "less"), slow("depth16unorm", "linear", "greater_equal"),
     ("depth32float", "nearest", "always")],
)  # fmt: skip
@pytest.mark.sample(1)
@pytest.mark.slow
def test_comparisons(name, filter, compare, rng, is_known):
    texture = mtl.Texture(texels_of(name, rng), name)
    agreed(
        sampling(False), "compared",
        (texture, mtl.Sampler(filter=filter, compare_func=compare)), values,
    )  # fmt: skip


#: Of each kind: extents, and what a kernel asks of it at three coordinates `at`, at the
#: texel `i`, and at the layer `n`.
KINDS = {
    "1d": ((37,), "t.sample(s, at.x) + t.read(i.x)"),
    "1d_array": ((3, 37), "t.sample(s, at.x, n) + t.read(i.x, n)"),
    "2d_array": ((3, 5, 37), "t.sample(s, at.xy, n) + t.read(i, n) + t.gather(s, at.xy, n)"),
    "3d": ((4, 5, 9), "t.sample(s, at, int3(1, 0, -1)) + t.read(uint3(i, n))"),
    "cube": ((6, 8, 8), "t.sample(s, at) + t.read(i, n) + t.gather(s, at)"),
    "cube_array": ((2, 6, 8, 8), "t.sample(s, at, n & 1) + t.read(i, n, n & 1)"),
    "2d_ms": ((4, 5, 37), "t.read(i, n)"),
    "buffer": ((37,), "t.read(i.x)"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(1)
def test_kinds(kind, rng, is_known):
    extents, expression = KINDS[kind]
    type_name = {"2d_ms": "texture2d_ms", "buffer": "texture_buffer"}.get(kind, f"texture{kind}")
    mode = "read" if kind in ("2d_ms", "buffer") else "sample"
    text = f"""
kernel void ask({type_name}<float, access::{mode}> t, sampler s, device float4* y, {ID}) {{
  const float3 at = float3(p.x, p.y, p.x + p.y) * float3(0.04f, 0.6f, -0.3f) - float3(1.1f, 2, 0.4f);
  const uint2 i = uint2(p.x * 3 % 40, p.y);
  const uint n = p.x % 3;
  y[p.x + p.y * {WIDTH}] = {expression};
}}
"""
    texture = mtl.Texture(texels_of("rgba8unorm", rng, extents), kind=kind)
    agreed(text, "ask", (texture, mtl.Sampler(filter="linear", address="repeat")), values)


def test_many_formats_and_settings_do_not_make_many_variants(rng, monkeypatch):
    monkeypatch.setattr(texture_specialization, "FEW_THREADS", 0)
    monkeypatch.setattr(texture_specialization, "MAX_VARIANTS", 2)
    texture = mtl.Texture(texels_of("rgba8unorm", rng))
    library.cache_clear()  # kernels that no launch has been seen of
    for bias in range(4):
        sampler = mtl.Sampler(address="repeat", lod_bias=bias)
        agreed(sampling(False), "sample", (texture, sampler), values)
    program = library(sampling(False), "simd").sample._program
    assert sum(bool(variant.textures) for variant, _ in program._variants) == 2


def test_textures_in_structs_and_arrays_are_vector_code(rng):
    text = f"""
struct Pair {{ texture2d<float> t; sampler s; }};
kernel void from_struct(constant Pair& pair, device float4* y, {ID})
{{ y[p.x + p.y * {WIDTH}] = pair.t.sample(pair.s, float2(p) / 40); }}
kernel void from_array(array<texture2d<float, access::read>, 2> t, device float4* y, {ID})
{{ y[p.x + p.y * {WIDTH}] = t[p.x % 2].read(p % 5); }}
"""
    first, second = (mtl.Texture(texels_of(n, rng), n) for n in ("rgba8unorm", "rg16float"))
    sampler = mtl.Sampler(filter="nearest")
    agreed(text, "from_struct", ({"t": first, "s": sampler},), values)
    [got] = agreed(text, "from_array", ([first, second],), values)
    assert np.isfinite(got).all()
