"""Formats of quantized matrices, those of MLX, as expressions of arrays.

Elements are packed from the lowest to the highest bits of a row of 32-bit words.
"""

from __future__ import annotations

from typing import NamedTuple

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import ceil, log2, maximum, minimum, round
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import reshape
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import (
    DType,
    float16,
    float32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from metalloid.arrays.ir.node import apply
from metalloid.arrays.ir.ops import BITS


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    mode : str
    group_size : int
        Consecutive elements of a row with a common scale.
    bits : int
        Bits of an element.
    """

    mode: str
    group_size: int
    bits: int


#: By mode: group sizes and bits; the default is the first.
_FORMATS = {
    "affine": ((64, 32, 128), (4, 2, 3, 5, 6, 8)),
    "mxfp4": ((32,), (4,)),
    "mxfp8": ((32,), (8,)),
    "nvfp4": ((16,), (4,)),
}


def format_of(where: str, mode: str, group_size: int | None, bits: int | None) -> Format:
    """Return a format, with the defaults of its mode.

    Raises
    ------
    ValueError
        If there is no such format.
    """
    if mode not in _FORMATS:
        raise ValueError(f"[{where}] mode must be one of {', '.join(_FORMATS)}, got {mode!r}.")
    sizes, widths = _FORMATS[mode]
    size, width = group_size or sizes[0], bits or widths[0]
    if size not in sizes:
        raise ValueError(
            f"[{where}] group_size must be one of {sorted(sizes)} for {mode}, got {size}."
        )
    if width not in widths:
        raise ValueError(f"[{where}] bits must be one of {sorted(widths)} for {mode}, got {width}.")
    return Format(mode, size, width)


def _bits(x: Array, dtype: DType) -> Array:
    """The same bits as another type of the same size."""
    return Array(apply(BITS, dtype, x._node))


def _shape(bits: int) -> tuple[int, int]:
    """Elements and bytes of the smallest unit of whole elements and bytes."""
    elements = {3: 8, 5: 8, 6: 4}.get(bits, 8 // bits)
    return elements, elements * bits // 8


def packed(codes: Array, bits: int) -> Array:
    """Pack unsigned integers along the last axis."""
    elements, size = _shape(bits)
    if 32 % bits == 0:
        elements, size = 32 // bits, 4
    wide = uint32 if size == 4 else uint64
    units = reshape(codes.astype(wide), (*codes.shape[:-1], -1, elements))
    shifts = arange(elements, dtype=wide, device=codes.device) * bits
    words = (units << shifts).sum(-1, dtype=wide)
    if size == 4:
        return words
    steps = arange(8, dtype=wide, device=codes.device) * 8
    quarters = reshape((words[..., None] >> steps[:size]) & 255, (*codes.shape[:-1], -1, 4))
    return (quarters << steps[:4]).sum(-1, dtype=wide).astype(uint32)


def unpacked(words: Array, bits: int) -> Array:
    """The unsigned integers in the rows of packed words."""
    elements, size = _shape(bits)
    if 32 % bits == 0:
        shifts = arange(32 // bits, dtype=uint32, device=words.device) * bits
        codes = (words[..., None] >> shifts) & (2**bits - 1)
    else:
        steps = arange(4, dtype=uint32, device=words.device) * 8
        parts = reshape((words[..., None] >> steps) & 255, (*words.shape[:-1], -1, size))
        low = parts[..., 0] | parts[..., 1] << 8 | parts[..., 2] << 16
        unit = low.astype(uint64)
        if size == 5:
            high = parts[..., 3].astype(uint64) | parts[..., 4].astype(uint64) << 8
            unit = unit | high << 24
        shifts = arange(elements, dtype=uint64, device=words.device) * bits
        codes = ((unit[..., None] >> shifts) & (2**bits - 1)).astype(uint32)
    return reshape(codes, (*words.shape[:-1], -1))


def from_float8(codes: Array) -> Array:
    """Floats of 8 bits (E4M3) as float32."""
    wide = codes.astype(uint16)
    return _bits((wide & 127) << 7 | (wide & 128) << 8, float16).astype(float32) * 256


def to_float8(x: Array) -> Array:
    """The nearest floats of 8 bits (E4M3), those of half the distance to the even one."""
    size = abs(x.astype(float32))
    size = where(size < 448, size, 448.0)  # NaN, too
    bits = _bits(size, uint32)
    exponent = maximum(bits >> 23, 121)
    # Adding this rounds to a multiple of the distance between floats of 8 bits.
    unit = _bits((exponent + 20) << 23, float32)
    rounded = (size + unit) - unit
    of_normal = (_bits(rounded, uint32) >> 20) - (120 << 3)
    of_small = round(rounded * 512).astype(uint32)
    code = where(rounded >= 2.0**-6, of_normal, of_small)
    return (code | where(_bits(x.astype(float32), uint32) >> 31 != 0, 128, 0)).astype(uint8)


def _from_float4(codes: Array) -> Array:
    wide = codes.astype(uint16)
    return _bits((wide & 7) << 9 | (wide & 8) << 12, float16).astype(float32) * 16384


def _to_float4(x: Array) -> Array:
    """The nearest floats of 4 bits (E2M1), those of half the distance to the even one."""
    size = minimum(abs(x), 6.0)
    code = sum(
        (size > limit if k % 2 == 0 else size >= limit).astype(uint32)
        for k, limit in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0))
    )
    return code | where(_bits(x, uint32) >> 31 != 0, 8, 0)


def _power8(codes: Array) -> Array:
    wide = codes.astype(uint32)
    return _bits(where(wide == 0, 2**22, wide << 23), float32)


def scale_values(scales: Array, mode: str) -> Array:
    """Scales as floats: those of the affine mode as they are."""
    if mode == "affine":
        return scales
    return from_float8(scales) if mode == "nvfp4" else _power8(scales)


def element_values(words: Array, fmt: Format) -> Array:
    """The elements of packed rows before they are scaled, as float32."""
    codes = unpacked(words, fmt.bits)
    if fmt.mode == "affine":
        return codes.astype(float32)
    return from_float8(codes) if fmt.bits == 8 else _from_float4(codes)


def quantized_affine(groups: Array, bits: int) -> tuple[Array, Array, Array]:
    """Codes, scales and biases of groups, which are along the last axis."""
    values = groups.astype(float32)
    low, high = values.min(-1, keepdims=True), values.max(-1, keepdims=True)
    largest = float(2**bits - 1)
    is_low = abs(low) > abs(high)
    step = maximum((high - low) / largest, 1e-7)
    scale = where(is_low, step, -step)
    edge = where(is_low, low, high)
    count = round(edge / scale)
    has_edge = count != 0
    scale = where(has_edge, edge / where(has_edge, count, 1), scale)
    bias = where(has_edge, edge, 0)
    codes = minimum(maximum(round((values - bias) / scale), 0), largest).astype(uint32)
    return codes, scale, bias


def quantized_floats(groups: Array, mode: str, global_scale: Array | None) -> tuple[Array, Array]:
    """Codes and scales of groups, which are along the last axis."""
    values = groups.astype(float32)
    largest = 448.0 if mode == "mxfp8" else 6.0
    scale = abs(values).max(-1, keepdims=True) / largest
    if mode == "nvfp4":
        factor = 1.0 if global_scale is None else 448.0 * 6.0 / global_scale.astype(float32)
        codes = to_float8(scale * factor)
        unit = from_float8(codes) / factor
    else:
        power = ceil(log2(where(scale == 0, 1, scale)))
        codes = (minimum(maximum(power, -127), 127) + 127).astype(uint8)
        unit = _power8(codes)
    quotients = where(unit == 0, 0, values / where(unit == 0, 1, unit))
    return (to_float8 if mode == "mxfp8" else _to_float4)(quotients), codes


def dequantized(words: Array, scales: Array, biases: Array | None, fmt: Format,
                dtype: DType) -> Array:  # fmt: skip
    """The matrix, rounded once from float32."""
    values = element_values(words, fmt)
    groups = reshape(values, (*values.shape[:-1], -1, fmt.group_size))
    factors = scale_values(scales, fmt.mode).astype(float32)[..., None]
    result = groups * factors
    if biases is not None:
        result = result + biases.astype(float32)[..., None]
    return reshape(result.astype(dtype), values.shape)
