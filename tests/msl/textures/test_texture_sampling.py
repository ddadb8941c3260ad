"""sample(): filters and address modes against SciPy, levels of detail against their definition."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"
#: SciPy's name of each address mode (with the value outside for the last two).
MODES = {
    "clamp_to_edge": "nearest", "repeat": "grid-wrap", "mirrored_repeat": "reflect",
    "clamp_to_zero": "grid-constant", "clamp_to_border": "grid-constant",
}  # fmt: skip
COUNT = 2000


@functools.cache
def kernels():
    text = HEADER
    for axes in (1, 2, 3):
        coordinate = "float" if axes == 1 else f"packed_float{axes}"
        offset = "" if axes == 1 else axes
        text += f"""
kernel void sample{axes}(texture{axes}d<float> t, sampler s, device const {coordinate}* at,
                         constant int{offset}& offset, device float4* y, {ID})
{{ y[i] = t.sample(s, at[i], offset); }}
"""
    return mtl.library(
        text
        + f"""
kernel void sample_int(texture2d<int> t, sampler s, device const float2* at, device int4* y, {ID})
{{ y[i] = t.sample(s, at[i]); }}
kernel void sample_half(texture2d<half> t, sampler s, device const float2* at, device half4* y, {ID})
{{ y[i] = t.sample(s, at[i]); }}
kernel void layers(texture2d_array<float> t, texture1d_array<float> u, device const float* layer,
                   device float2* y, {ID}) {{
  constexpr sampler s(coord::pixel);
  y[i] = float2(t.sample(s, float2(0), layer[i]).x, u.sample(s, 0, uint(layer[i])).x);
}}
kernel void lods(texture2d<float> t, sampler s, device const float* lod, device float* y, {ID})
{{ y[i] = t.sample(s, float2(0.5), level(lod[i])).x; }}
kernel void options(texture2d<float> t, sampler s, device float* y) {{
  y[0] = t.sample(s, float2(0.5), level(2)).x;
  y[1] = t.sample(s, float2(0.5), bias(2)).x;
  y[2] = t.sample(s, float2(0.5), gradient2d(float2(4.0 / 16, 0), float2(0, 1.0 / 16))).x;
  y[3] = t.sample(s, float2(0.5), min_lod_clamp(2)).x;
  y[4] = t.sample(s, float2(0.5), bias(1), min_lod_clamp(2)).x;
  y[5] = t.sample(s, float2(0.5), gradient2d(0, 0), min_lod_clamp(2), int2(0)).x;
}}
"""
    )


def smoothness(x, axes):
    """Largest step between neighbours: what an error of one texel in a coordinate can cost."""
    return max(np.abs(np.diff(x, axis=axis, append=0, prepend=0)).max() for axis in range(axes))


def expected(x, at, mode, order, outside, offset=0):
    """(count, 4) samples of x at texel coordinates; SciPy puts texel centres at whole numbers."""
    coordinates = (at + offset - 0.5).T[::-1]  # x is the last axis
    channels = [
        ndimage.map_coordinates(
            x[..., c].astype(np.float64), coordinates, order=order, mode=MODES[mode], cval=outside[c],
            prefilter=False,
        )
        for c in range(4)
    ]  # fmt: skip
    return np.stack(channels, -1)


def texel_coordinates(rng, shape, order, spread):
    """Texel coordinates, for the nearest filter not so close to a border that rounding decides."""
    at = rng.uniform(-spread, 1 + spread, (COUNT, len(shape))) * shape[::-1]
    if order == 0:
        at = np.floor(at) + rng.uniform(0.01, 0.99, at.shape)
    return at


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(13,), (8, 11), (1, 5), (5, 4, 7)])
@pytest.mark.sample(2, per="mode")
def test_filters_and_address_modes(shape, mode, filter, rng):
    x = rng.random((*shape, 4), np.float32)
    order = int(filter == "linear")
    at = texel_coordinates(rng, shape, order, 1.5)
    sampler = mtl.Sampler(filter=filter, address=mode, border_color="opaque_white")
    outside = (1, 1, 1, 1) if mode == "clamp_to_border" else (0, 0, 0, 0)
    offset = np.array([2, -3, 1][: len(shape)], np.int32)
    for shift in (0 * offset, offset):
        y = np.zeros((COUNT, 4), np.float32)
        coordinates = (at / shape[::-1]).astype(np.float32)
        kernel = getattr(kernels(), f"sample{len(shape)}")
        given_offset = tuple(shift.tolist()) if len(shape) > 1 else int(shift[0])
        kernel(x, sampler, coordinates, given_offset, y, threads=COUNT)
        exact = expected(
            x, coordinates.astype(np.float64) * shape[::-1], mode, order, outside, shift
        )
        # The coordinate in texels is a float: a few roundings of its size, times the steepest slope;
        # and the blending of 2 to 8 corners.
        texels = 4 * max(shape) * 2**-23
        bound = texels * len(shape) * smoothness(x, len(shape)) + 8 * 2**-24
        assert np.abs(y - exact).max() <= (bound if order else 0)


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mode", ["clamp_to_edge", "clamp_to_zero", "clamp_to_border"])
@pytest.mark.sample(2)
def test_pixel_coordinates(mode, filter, rng):
    shape = (6, 9)
    x = rng.random((*shape, 4), np.float32)
    order = int(filter == "linear")
    at = texel_coordinates(rng, shape, order, 0.5).astype(np.float32)
    y = np.zeros((COUNT, 4), np.float32)
    sampler = mtl.Sampler(coord="pixel", filter=filter, address=mode)
    kernels().sample2(x, sampler, at, (0, 0), y, threads=COUNT)
    exact = expected(x, at.astype(np.float64), mode, order, (0, 0, 0, 0))
    np.testing.assert_allclose(y, exact, rtol=0, atol=8 * 2**-24 if order else 0)


def test_each_axis_has_its_address_mode(rng):
    x = rng.random((4, 5, 6, 4), np.float32)
    modes = ("repeat", "mirrored_repeat", "clamp_to_edge")
    at = texel_coordinates(rng, (4, 5, 6), 0, 1.5)
    y = np.zeros((COUNT, 4), np.float32)
    sampler = mtl.Sampler(s_address=modes[0], t_address=modes[1], r_address=modes[2])
    coordinates = (at / (6, 5, 4)).astype(np.float32)
    kernels().sample3(x, sampler, coordinates, (0, 0, 0), y, threads=COUNT)
    i = np.floor(at).astype(int)
    mirrored = np.where(i[:, 1] % 10 < 5, i[:, 1] % 10, 9 - i[:, 1] % 10)
    np.testing.assert_array_equal(y, x[np.clip(i[:, 2], 0, 3), mirrored, i[:, 0] % 6])


def test_borders_of_formats_without_alpha():
    x = np.full((2, 2), 9, np.float32)
    for color, mode, exact in (
        ("transparent_black", "clamp_to_border", [0, 0, 0, 0]),
        ("opaque_black", "clamp_to_border", [0, 0, 0, 1]),
        ("opaque_white", "clamp_to_border", [1, 1, 1, 1]),
        ("opaque_white", "clamp_to_zero", [0, 0, 0, 1]),  # opaque, as there is no alpha
    ):
        y = np.zeros((1, 4), np.float32)
        sampler = mtl.Sampler(address=mode, border_color=color)
        kernels().sample2(x, sampler, np.float32([[3, 3]]), (0, 0), y, threads=1)
        assert y[0].tolist() == exact


WILD = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 2.0**31, 0.0, -0.0, 1e-40]


@given(
    u=st.sampled_from(WILD) | st.floats(width=32),
    v=st.sampled_from(WILD) | st.floats(width=32),
    mode=st.sampled_from(list(MODES)),
    filter=st.sampled_from(["nearest", "linear"]),
    coord=st.sampled_from(["normalized", "pixel"]),
    offset=st.sampled_from([0, -8, 7, 2**31 - 1, -(2**31)]),
)
def test_no_coordinate_leaves_the_texture(u, v, mode, filter, coord, offset):
    """Around the texture lies what must not be seen."""
    memory = np.full((64, 64), 1e30, np.float32)
    memory[31:33, 31:34] = 1
    y = np.zeros((1, 4), np.float32)
    sampler = mtl.Sampler(address=mode, filter=filter, coord=coord)
    kernels().sample2(
        memory[31:33, 31:34], sampler, np.float32([[u, v]]), (offset, offset), y, threads=1
    )
    assert 0 <= y[0, 0] <= 1


def test_integers_are_never_blended(rng):
    x = rng.integers(-100, 100, (5, 6, 4)).astype(np.int32)
    at = texel_coordinates(rng, (5, 6), 0, 0.5)
    results = []
    for filter in ("nearest", "linear"):
        y = np.zeros((COUNT, 4), np.int32)
        coordinates = (at / (6, 5)).astype(np.float32)
        kernels().sample_int(x, mtl.Sampler(filter=filter), coordinates, y, threads=COUNT)
        results.append(y)
    i = np.clip(np.floor(at).astype(int), 0, (5, 4))
    np.testing.assert_array_equal(results[0], x[i[:, 1], i[:, 0]])
    np.testing.assert_array_equal(results[1], results[0])


def test_half_is_blended_in_float(rng):
    x = rng.integers(0, 256, (8, 8, 4)).astype(np.uint8)
    at = rng.uniform(0, 1, (COUNT, 2)).astype(np.float32)
    exact, y = np.zeros((COUNT, 4), np.float32), np.zeros((COUNT, 4), np.float16)
    sampler = mtl.Sampler(filter="linear")
    kernels().sample2(x, sampler, at, (0, 0), exact, threads=COUNT)
    kernels().sample_half(x, sampler, at, y, threads=COUNT)
    np.testing.assert_array_equal(y, exact.astype(np.float16))


def test_layers_are_rounded_and_clamped():
    x = np.arange(4, dtype=np.float32)
    layer = np.float32([0, 0.5, 0.51, 1.5, 2.5, 3.49, 7, 1e20, -3, np.nan])
    y = np.zeros((len(layer), 2), np.float32)
    kernels().layers(
        np.broadcast_to(x[:, None, None], (4, 1, 1)).copy(), x[:, None].copy(), layer, y,
        threads=len(layer),
    )  # fmt: skip
    assert y[:, 0].tolist() == [0, 0, 1, 2, 2, 3, 3, 3, 0, 0]
    assert y[:7, 1].tolist() == [0, 0, 0, 1, 2, 3, 3]


def numbered_levels():
    """A texture of 16 x 16 whose level n holds 10 n everywhere."""
    texture = mtl.Texture((16, 16), "r32float", mipmaps=True)
    for level in range(texture.levels):
        texture.numpy(level)[...] = 10 * level
    return texture


@pytest.mark.parametrize("mip_filter", ["none", "nearest", "linear"])
@pytest.mark.parametrize("clamp", [(0, 32), (1.25, 2.5)])
def test_levels_of_detail(mip_filter, clamp):
    texture = numbered_levels()
    lod = np.float32([-3, 0, 0.25, 0.49, 0.51, 1.75, 2, 3.9, 4, 5, 100, np.inf, np.nan])
    y = np.zeros_like(lod)
    kernels().lods(
        texture, mtl.Sampler(mip_filter=mip_filter, lod_clamp=clamp), lod, y, threads=lod.size
    )
    level = np.clip(np.clip(np.nan_to_num(lod, nan=0, posinf=99), *clamp), 0, 4)
    exact = {"none": 0 * level, "nearest": 10 * np.floor(level + 0.5), "linear": 10 * level}
    np.testing.assert_allclose(y, exact[mip_filter], rtol=4 * 2**-24)


def test_options_of_the_level_of_detail():
    y = np.zeros(6, np.float32)
    kernels().options(numbered_levels(), mtl.Sampler(mip_filter="nearest"), y, threads=1)
    assert y.tolist() == [20] * 6


def test_magnifying_and_minifying_filters():
    texture = numbered_levels()
    texture.numpy(0)[:, ::2] = 4  # nearest gives 4, linear the mean of 0 and 4
    texture.numpy(1)[:, ::2] = 14
    lod, y = np.float32([0, 1]), np.zeros(2, np.float32)
    for filters, exact in (
        ({"mag_filter": "linear"}, [2, 14]),
        ({"min_filter": "linear"}, [4, 12]),
        ({"filter": "linear"}, [2, 12]),
    ):
        kernels().lods(texture, mtl.Sampler(mip_filter="nearest", **filters), lod, y, threads=2)
        assert y.tolist() == exact


SAMPLERS = {
    "": {},
    "filter::linear": {"filter": "linear"},
    "mag_filter::linear, address::repeat": {"mag_filter": "linear", "address": "repeat"},
    "coord::pixel, filter::linear, address::clamp_to_border, border_color::opaque_white":
        {"coord": "pixel", "filter": "linear", "address": "clamp_to_border",
         "border_color": "opaque_white"},
    "s_address::mirrored_repeat, t_address::clamp_to_zero, r_address::repeat, min_filter::linear":
        {"s_address": "mirrored_repeat", "t_address": "clamp_to_zero", "r_address": "repeat",
         "min_filter": "linear"},
    "mip_filter::linear, lod_clamp(0.5, 1.75), max_anisotropy(4), compare_func::less":
        {"mip_filter": "linear", "lod_clamp": (0.5, 1.75), "max_anisotropy": 4,
         "compare_func": "less"},
    "filter::linear, mip_filter::linear, reduction::maximum, lod_bias(-0.75)":
        {"filter": "linear", "mip_filter": "linear", "reduction": "maximum", "lod_bias": -0.75},
    "lod_bias(20), mip_filter::linear": {"lod_bias": 15.999, "mip_filter": "linear"},
    "mip_filter::nearest, compare_func::not_equal":
        {"mip_filter": "nearest", "compare_func": "not_equal"},
}  # fmt: skip


def test_samplers_in_the_text_are_those_of_python(rng):
    """Local, at program scope, in constant memory and as an argument: the same results."""
    text, cases = HEADER, ""
    for number, options in enumerate(SAMPLERS):
        text += f"constexpr sampler s{number}{f'({options})' if options else ''};\n"
        cases += f"case {number}: {{ constexpr sampler own = sampler({options}); "
        cases += f"y[i] = take(t, s{number}, at[i]) + take(t, own, at[i]); }} break;\n"
    lib = mtl.library(
        text
        + f"""
constant constexpr sampler in_constant(filter::linear);
float4 take(texture2d<float> t, sampler s, float2 at) {{ return t.sample(s, at, level(1.5)); }}
kernel void given(texture2d<float> t, sampler s, device const float2* at, device float4* y, {ID})
{{ y[i] = 2 * take(t, s, at[i]); }}
kernel void written(texture2d<float> t, constant int& which, device const float2* at,
                    device float4* y, {ID}) {{ switch (which) {{ {cases} }} }}
kernel void from_constant(texture2d<float> t, device const float2* at, device float4* y, {ID})
{{ y[i] = 2 * t.sample(in_constant, at[i], level(1.5)); }}
"""
    )
    texture = mtl.Texture(rng.random((12, 8, 4), np.float32), mipmaps=True)
    at = rng.uniform(-3, 9, (300, 2)).astype(np.float32)
    a, b = np.zeros((300, 4), np.float32), np.zeros((300, 4), np.float32)
    for number, options in enumerate(SAMPLERS.values()):
        lib.given(texture, mtl.Sampler(**options), at, a, threads=300)
        lib.written(texture, number, at, b, threads=300)
        np.testing.assert_array_equal(a, b)
    lib.given(texture, mtl.Sampler(filter="linear"), at, a, threads=300)
    lib.from_constant(texture, at, b, threads=300)
    np.testing.assert_array_equal(a, b)


# ---- reductions and biases -----------------------------------------------------------------------


def footprints(levels, at, lod):
    """Texels that trilinear filtering weighs, (count, texels); NaN for no weight."""
    low, weights = np.floor(lod).astype(int), []
    for level in (low, low + 1):
        weighs = np.ones_like(lod, bool) if level is low else lod > low
        for step in map(np.array, np.ndindex(2, 2)):
            one = np.full(len(lod), np.nan)
            for n in np.unique(level[weighs]):
                texels, here = levels[n], weighs & (level == n)
                corner = at[here] * texels.shape[::-1] - 0.5
                index = np.floor(corner) + step
                counts = ((step == 0) | (corner > np.floor(corner))).all(1)
                x, y = np.clip(index, 0, np.array(texels.shape[::-1]) - 1).astype(int).T
                one[here] = np.where(counts, texels[y, x], np.nan)
            weights.append(one)
    return np.stack(weights, -1)


@functools.cache
def reducing():
    return mtl.library(
        HEADER
        + f"""
kernel void given(texture2d<float> t, sampler s, device const float2* at, device const float* lod,
                  device float* y, {ID}) {{ y[i] = t.sample(s, at[i], level(lod[i])).x; }}
kernel void minimum(texture2d<float> t, device const float2* at, device const float* lod,
                    device float* y, {ID}) {{
  constexpr sampler s(filter::linear, mip_filter::linear, reduction::minimum);
  y[i] = t.sample(s, at[i], level(lod[i])).x;
}}
kernel void biased(texture2d<float> t, device const float* lod, device float* y, {ID}) {{
  constexpr sampler s(mip_filter::linear, lod_bias(-1.25), lod_clamp(0.5, 3));
  y[i] = t.sample(s, float2(0.5), level(lod[i])).x;
}}
kernel void cube(texturecube<float> t, sampler s, device float* y)
{{ y[0] = t.sample(s, float3(1, 0, 0), level(0)).x; }}
"""
    )


def reduction_case(rng):
    texture = mtl.Texture(rng.random((8, 16), np.float32), mipmaps=True)
    levels = [texture.numpy(n) for n in range(texture.levels)]
    at = rng.uniform(-0.2, 1.2, (COUNT, 2)).astype(np.float32)
    # Also where some weights are 0: at centres of texels, and at whole levels.
    at[::3] = (rng.integers(0, (16, 8), (len(at[::3]), 2)) + 0.5) / (16, 8)
    lod = rng.uniform(0, 3, COUNT).astype(np.float32)
    lod[::2] = 0
    return texture, levels, at, lod


@pytest.mark.parametrize("reduction", ["minimum", "maximum"])
def test_reductions_of_linear_filters(rng, reduction):
    texture, levels, at, lod = reduction_case(rng)
    take = {"minimum": np.nanmin, "maximum": np.nanmax}[reduction]
    expected = take(footprints(levels, at, lod), axis=-1).astype(np.float32)
    y = np.zeros(COUNT, np.float32)
    sampler = mtl.Sampler(filter="linear", mip_filter="linear", reduction=reduction)
    reducing().given(texture, sampler, at, lod, y, threads=COUNT)
    np.testing.assert_array_equal(y, expected)
    if reduction == "minimum":
        reducing().minimum(texture, at, lod, y, threads=COUNT)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "filters",
    [
        {"filter": "linear"},
        {"filter": "linear", "mip_filter": "nearest"},
        {"mag_filter": "linear", "mip_filter": "linear"},
        {"min_filter": "linear", "mip_filter": "linear"},
    ],
)
def test_other_filters_have_no_reduction(rng, filters):
    texture, _, at, lod = reduction_case(rng)
    a, b = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32)
    reducing().given(texture, mtl.Sampler(**filters), at, lod, a, threads=COUNT)
    reduced = mtl.Sampler(**filters, reduction="maximum")
    reducing().given(texture, reduced, at, lod, b, threads=COUNT)
    np.testing.assert_array_equal(a, b)


def test_reductions_across_the_faces_of_a_cube():
    """Between four texels of a face, all of them count."""
    faces = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
    y = np.zeros(1, np.float32)
    for reduction, exact in (("minimum", 0), ("maximum", 3), ("weighted_average", 1.5)):
        sampler = mtl.Sampler(filter="linear", mip_filter="linear", reduction=reduction)
        reducing().cube(faces, sampler, y, threads=1)
        assert y[0] == exact


def test_biases_of_the_level_of_detail():
    lod = np.float32([-3, 0, 0.75, 1.25, 2, 3.5, 9])
    y = np.zeros_like(lod)
    reducing().biased(numbered_levels(), lod, y, threads=lod.size)
    np.testing.assert_allclose(y, 10 * np.clip(lod - 1.25, 0.5, 3), rtol=4 * 2**-24)
    for bias in (-16, -1.25, -1 / 64, 0, 0.3, 2.5, 15.999):
        rounded = np.clip(np.floor(bias * 64 + 0.5) / 64, -16, 1023 / 64)
        sampler = mtl.Sampler(mip_filter="linear", lod_bias=bias)
        kernels().lods(numbered_levels(), sampler, lod, y, threads=lod.size)
        np.testing.assert_allclose(y, 10 * np.clip(lod + rounded, 0, 4), rtol=4 * 2**-24)
