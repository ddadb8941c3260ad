"""Texels of each pixel format: the values that are read, and those that are stored."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.runtime.textures.pixel_formats import FORMATS

SOURCE = """
#include <metal_stdlib>
using namespace metal;
#define COPY(T) \\
kernel void read_##T(texture2d<T, access::read> t, device T##4* y, uint2 p [[thread_position_in_grid]]) \\
{ y[p.x + p.y * t.get_width()] = t.read(p); } \\
kernel void write_##T(texture2d<T, access::write> t, device const T##4* x, uint2 p [[thread_position_in_grid]]) \\
{ t.write(x[p.x + p.y * t.get_width()], p); }
COPY(float) COPY(half) COPY(int) COPY(uint) COPY(short) COPY(ushort)
"""
ELEMENTS = {
    "float": np.float32, "half": np.float16, "int": np.int32, "uint": np.uint32,
    "short": np.int16, "ushort": np.uint16,
}  # fmt: skip
READERS = {"f": ("float", "half"), "i": ("int", "short"), "u": ("uint", "ushort")}
PLAIN = [name for name in FORMATS if "srgb" not in name]


@functools.cache
def kernels():
    return mtl.library(SOURCE)


def texels_of(name, rng, shape=(7, 5)):
    """A texture of random bits, with the extremes among them."""
    info = FORMATS[name]
    shape = (*shape, info.channels) if info.channels > 1 else shape
    if info.dtype.kind == "f":
        texels = rng.normal(0, 100, shape).astype(info.dtype)
        extremes = [0, -0.0, np.inf, -np.inf, np.nan, np.finfo(info.dtype).tiny, 1]
    else:
        bounds = np.iinfo(info.dtype)
        texels = rng.integers(bounds.min, bounds.max, shape, info.dtype, endpoint=True)
        extremes = [bounds.min, bounds.max, 0, 1, bounds.max - 1, bounds.min + 1]
    texels.reshape(-1)[: len(extremes)] = extremes
    return texels


def four_channels(values, info):
    """(..., 4) of an array with info.channels channels: what is missing is 0, alpha 1."""
    values = values.reshape(7, 5, info.channels)
    full = np.zeros((7, 5, 4), values.dtype)
    full[..., 3] = 1
    full[..., : info.channels] = values
    return full[..., [2, 1, 0, 3]] if info.name.startswith("bgra") else full


def decoded(texels, info):
    """The definition of the specification, in float64."""
    if info.component.endswith("unorm"):
        return texels / np.float64(np.iinfo(info.dtype).max)
    if info.component.endswith("snorm"):
        return np.maximum(texels / np.float64(np.iinfo(info.dtype).max), -1)
    return texels


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.sample(5)
def test_read(name, rng):
    info = FORMATS[name]
    texels = texels_of(name, rng)
    texture = mtl.Texture(texels, name)
    expected = four_channels(decoded(texels, info), info)
    for element in READERS[info.element_kind]:
        y = np.zeros((7, 5, 4), ELEMENTS[element])
        getattr(kernels(), f"read_{element}")(texture, y, threads=(5, 7))
        if info.element_kind == "f":
            # A quotient of small integers is rounded once, for half twice.
            rounded = expected.astype(np.float32).astype(y.dtype)
            np.testing.assert_array_equal(y, rounded)
        else:
            np.testing.assert_array_equal(y, expected.astype(y.dtype))


def encoded(values, info):
    """The definition of the specification: saturate, scale, round to the nearest even."""
    if info.component.endswith("norm"):
        bounds = np.iinfo(info.dtype)
        least = 0 if bounds.min == 0 else -1
        return np.rint(np.clip(np.nan_to_num(values), least, 1) * np.float64(bounds.max))
    if info.dtype.kind in "iu":
        bounds = np.iinfo(info.dtype)
        return np.clip(values, bounds.min, bounds.max)
    return values


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.sample(5)
def test_write(name, rng):
    info = FORMATS[name]
    for element in READERS[info.element_kind]:
        dtype = ELEMENTS[element]
        if info.element_kind == "f":
            x = rng.normal(0, 1, (7, 5, 4)).astype(dtype)
            x.reshape(-1)[:8] = [0, 1, -1, np.nan, 2, -2, np.inf, -np.inf]
        else:
            bounds = np.iinfo(dtype)
            x = rng.integers(bounds.min, bounds.max, (7, 5, 4), dtype, endpoint=True)
            x[::2] = x[::2] % 300
        texture = mtl.Texture((7, 5), name)
        getattr(kernels(), f"write_{element}")(texture, x, threads=(5, 7))
        order = [2, 1, 0, 3] if name.startswith("bgra") else range(4)
        wide = x.astype(np.float64 if info.element_kind == "f" else np.int64)
        with np.errstate(over="ignore"):
            expected = encoded(wide[..., order][..., : info.channels], info).astype(info.dtype)
        got = texture.numpy().reshape(expected.shape)
        if info.component.endswith("norm"):
            # The product with the largest integer is rounded to float before it is rounded to an
            # integer: the specification allows an error of 0.6 where 0.5 is exact.
            exact = np.clip(np.nan_to_num(wide[..., order][..., : info.channels]), -1, 1)
            exact = exact * np.float64(np.iinfo(info.dtype).max)
            differs = got != expected
            assert (np.abs(got - np.maximum(exact, np.iinfo(info.dtype).min))[differs] < 0.51).all()
            assert differs.mean() < 0.01
        else:
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", [name for name in FORMATS if "srgb" in name])
def test_srgb(name):
    info = FORMATS[name]
    codes = np.arange(256, dtype=np.uint8)
    texels = np.repeat(codes, info.channels).reshape(16, 16, info.channels)
    texture = mtl.Texture(texels if info.channels > 1 else texels[..., 0], name)
    y = np.zeros((16, 16, 4), np.float32)
    kernels().read_float(texture, y, threads=(16, 16))
    c = codes.reshape(16, 16) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    colours = min(info.channels, 3)
    np.testing.assert_allclose(y[..., :colours], np.stack([linear] * colours, -1), rtol=1e-6)
    if info.channels == 4:
        np.testing.assert_array_equal(y[..., 3], c.astype(np.float32))
    copy = mtl.Texture((16, 16), name)
    kernels().write_float(copy, y, threads=(16, 16))
    np.testing.assert_array_equal(copy.numpy(), texture.numpy())


ARRAYS = {  # dtype and element of the texture: what the largest number reads as
    ("uint8", "float"): 1, ("int8", "float"): 1, ("uint16", "half"): 1, ("int16", "float"): 1,
    ("float16", "float"): 1024, ("float32", "half"): 1024, ("float32", "float"): 1024,
    ("uint8", "uint"): 255, ("uint8", "ushort"): 255, ("uint16", "ushort"): 65535,
    ("uint32", "uint"): 2**32 - 1, ("int8", "short"): 127, ("int16", "int"): 32767,
    ("int32", "int"): 2**31 - 1,
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "element"), ARRAYS)
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_arrays_are_textures_of_their_dtype(dtype, element, channels):
    x = np.zeros((3, 2, channels), dtype)
    x[1, 1] = 1024 if x.dtype.kind == "f" else np.iinfo(dtype).max
    y = np.zeros((3, 2, 4), ELEMENTS[element])
    getattr(kernels(), f"read_{element}")(x if channels > 1 else x[..., 0], y, threads=(2, 3))
    assert (y[1, 1, :channels] == ARRAYS[dtype, element]).all()
    assert (y[0, 0] == [0, 0, 0, 0 if channels == 4 else 1]).all()


@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    name=st.sampled_from([n for n in FORMATS if not n.startswith(("bgra", "depth"))]),
    seed=st.integers(0, 2**32),
)
def test_what_is_written_is_read(shape, name, seed):
    """The codes of a format stand for different values: they survive a copy."""
    info = FORMATS[name]
    element = READERS[info.element_kind][0]
    texels = texels_of(name, np.random.default_rng(seed), (max(shape[0], 7), shape[1]))
    texels = np.nan_to_num(texels) if info.dtype.kind == "f" else texels
    if info.component.endswith("snorm"):  # two codes stand for -1
        texels = np.maximum(texels, -np.iinfo(info.dtype).max)
    height, width = texels.shape[:2]
    source, target = mtl.Texture(texels, name), mtl.Texture((height, width), name)
    values = np.zeros((height, width, 4), ELEMENTS[element])
    getattr(kernels(), f"read_{element}")(source, values, threads=(width, height))
    getattr(kernels(), f"write_{element}")(target, values, threads=(width, height))
    np.testing.assert_array_equal(target.numpy(), source.numpy())
