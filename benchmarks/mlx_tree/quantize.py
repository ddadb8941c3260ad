"""Packing and unpacking: what the kernels make of numbers, and of packed numbers."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import FLOAT, Family, roundoff
from mlx_tree.packed import (
    E2M1,
    E4M3,
    GLOBAL_FACTOR,
    GLOBAL_SCALE,
    LARGEST_E2M1,
    LARGEST_E4M3,
    pack,
    small_float_scales,
    small_float_values,
    unpack,
)
from mlx_tree.products import assert_rounded, exactly, operand, poisoned
from mlx_tree.quantized import Entry

_ROWS = 6
#: How near a quotient may be to a tie, relatively, to be rounded up or down: it errs by 2 ulps.
_TIE = 4 * 2.0**-23


def _run(kernel: mtl.Kernel, threads: int, **arguments) -> None:
    names = {parameter.name for parameter in kernel.signature.buffers}
    group_size = min(threads, kernel.max_group_size)
    kernel(
        **{name: value for name, value in arguments.items() if name in names},
        threads=threads, group_size=group_size,
    )  # fmt: skip


def _halfway(quotients: np.ndarray) -> np.ndarray:
    """Where rounding to integers may go up or down."""
    return np.abs(quotients - np.floor(quotients) - 0.5) <= _TIE * (np.abs(quotients) + 1)


def check_affine_quantize(kernel, entry: Entry, rng) -> None:
    group, bits = entry.group, entry.bits
    w = operand(rng, (_ROWS, 2, group), entry.dtype)
    w[0, 0] = 0  # a group without a range
    out = np.zeros((_ROWS, 2, group * bits // 8), np.uint8)
    scales, biases = poisoned((2, _ROWS, 2), entry.dtype)
    _run(kernel, w.size // (group // 32), w=w, out=out, scales=scales, biases=biases)
    # The larger end of the range is to be a multiple of the scale, so that zero is a code.
    exact, largest = exactly(w), 2**bits - 1
    low, high = np.minimum(exact.min(axis=-1), np.inf), np.maximum(exact.max(axis=-1), 0)
    scale = np.maximum((high - low) / largest, 1e-7)
    scale = np.where(np.abs(low) > np.abs(high), scale, -scale)
    edge = np.where(np.abs(low) > np.abs(high), low, high)
    steps = np.sign(edge / scale) * np.floor(np.abs(edge / scale) + 0.5)
    clear = ~_halfway(edge / scale)
    bias = np.where(steps == 0, 0, edge)
    scale = np.where(steps == 0, scale, edge / np.where(steps == 0, 1, steps))
    assert_rounded(scales[clear], scale[clear], 8 * roundoff(FLOAT) * np.abs(scale[clear]))
    assert_rounded(biases[clear], bias[clear], 0)
    quotients = (exact - bias[..., None]) / scale[..., None]
    codes = np.minimum(np.floor(quotients + 0.5), largest)
    clear = clear[..., None] & ~_halfway(quotients)
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(unpack(out, bits)[clear], codes[clear])


def check_affine_dequantize(kernel, entry: Entry, rng) -> None:
    group, bits = entry.group, entry.bits
    codes = rng.integers(0, 2**bits, (_ROWS, 2, group)).astype(np.uint8)
    scales, biases = operand(rng, (2, _ROWS, 2), entry.dtype)
    out = poisoned(codes.shape, entry.dtype)
    per_thread = {3: 8, 5: 8, 6: 4}.get(bits, 8 // bits)
    _run(kernel, codes.size // per_thread, w=pack(codes, bits), scales=scales, biases=biases,
         out=out)  # fmt: skip
    product, added = codes * exactly(scales)[..., None], exactly(biases)[..., None]
    assert_rounded(out, product + added, roundoff(entry.dtype) * np.abs(product))


def _small_scales(w: np.ndarray, entry: Entry, encoding: float) -> np.ndarray:
    """Codes of the scales for groups of float32 numbers."""
    largest = np.float32(LARGEST_E2M1 if entry.bits == 4 else LARGEST_E4M3)
    range_ = np.abs(w.astype(np.float32)).max(axis=-1) / largest * np.float32(encoding)
    if entry.group == 16:
        return range_.astype(E4M3).view(np.uint8)
    return np.uint8(np.clip(np.rint(np.log2(range_.astype(np.float64))), -127, 127) + 127)


def _nearest_small(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest numbers that have a code, and where two are equally near (up to rounding)."""
    magnitude = E2M1[:8] if bits == 4 else np.arange(127, dtype=np.uint8).view(E4M3).astype(float)
    table = np.unique(np.concatenate([-magnitude, magnitude]))
    above = np.clip(np.searchsorted(table, values), 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    to_low, to_high = values - low, high - values
    tied = np.abs(to_low - to_high) <= 2 * _TIE * np.abs(values)
    return np.where(to_low < to_high, low, high), tied


def _check_small_values(values, w, scales, encoding, entry: Entry) -> None:
    """`values` are to be what is nearest to the scaled `w` among the small floats."""
    factors = small_float_scales(scales, entry.group)[..., None]
    nearest, tied = _nearest_small(exactly(w) * encoding / factors, entry.bits)
    assert tied.mean() < 0.1
    np.testing.assert_array_equal(values[~tied], nearest[~tied])


def check_small_quantize(kernel, entry: Entry, rng) -> None:
    encoding = 1 / GLOBAL_FACTOR if entry.flags["hgs"] == "true" else 1.0
    w = operand(rng, (_ROWS, 2, entry.group), entry.dtype)
    out = np.zeros((_ROWS, 2, entry.group * entry.bits // 8), np.uint8)
    scales = np.zeros((_ROWS, 2), np.uint8)
    _run(kernel, w.size, w=w, out=out, scales=scales, global_scale=np.float32(GLOBAL_SCALE))
    np.testing.assert_array_equal(scales, _small_scales(w, entry, encoding))
    values = small_float_values(unpack(out, entry.bits), entry.bits)
    _check_small_values(values, w, scales, encoding, entry)


def check_small_dequantize(kernel, entry: Entry, rng) -> None:
    factor = GLOBAL_FACTOR if entry.flags["hgs"] == "true" else 1.0
    codes = np.arange(2**entry.bits, dtype=np.uint8)
    codes = codes[(codes & 0x7F) != 0x7F]  # not a number
    codes = np.resize(rng.permutation(codes), (_ROWS, 2, 4, entry.group))
    scales = rng.integers(40, 80, codes.shape[:-1]).astype(np.uint8)
    if entry.group != 16:
        scales += 50
    out = poisoned(codes.shape, entry.dtype)
    _run(kernel, codes.size * entry.bits // 8, w=pack(codes, entry.bits), scales=scales, out=out,
         global_scale=np.float32(GLOBAL_SCALE))  # fmt: skip
    factors = factor * small_float_scales(scales, entry.group)[..., None]
    exact = small_float_values(codes, entry.bits) * factors
    np.testing.assert_array_equal(out, exact.astype(entry.dtype))


def check_small_round_trip(kernel, entry: Entry, rng) -> None:
    encoding = 1 / GLOBAL_FACTOR if entry.flags["hgs"] == "true" else 1.0
    w = operand(rng, (_ROWS, 2, entry.group), entry.dtype)
    out = poisoned(w.shape, entry.dtype)
    _run(kernel, w.size, w=w, out=out, global_scale=np.float32(GLOBAL_SCALE))
    scales = _small_scales(w, entry, encoding)
    factors = small_float_scales(scales, entry.group)[..., None] / encoding
    _check_small_values(exactly(out) / factors, w, scales, encoding, entry)


_CHECKS = {
    ("affine", "quantize"): check_affine_quantize,
    ("affine", "dequantize"): check_affine_dequantize,
    ("small", "quantize"): check_small_quantize,
    ("small", "dequantize"): check_small_dequantize,
    ("small", "quantize_dequantize"): check_small_round_trip,
}


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    entry = Entry.parse(name)
    mode = "affine" if entry.mode == "affine" else "small"
    _CHECKS[mode, entry.form](library.function(name), entry, rng)


FAMILIES = (
    Family("quantize", ("quantized.metal",), check, lambda name: "quantize" in name),
    Family("fp quantize", ("fp_quantized.metal",), check, lambda name: "quantize" in name),
)
