"""Rows as 16-bit integers with a step for each group, for `quantized_integers.metal`.

The largest magnitude of a group is 32767 steps, so no element is off by more than 2**-16 of it. The
elements of bfloat16 and float16, for which alone it is used, are rounded more coarsely.
"""

from __future__ import annotations

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import abs, maximum, round
from metalloid.arrays.functions.manipulation import pad, permute_dims, reshape
from metalloid.arrays.ir.dtypes import DType, int16
from metalloid.nn.quantized_formats import Format

_LANES = 32
_LARGEST = 32767


def takes_integers(dtype: DType, fmt: Format) -> bool:
    """Whether rows of a type are multiplied as integers."""
    is_affine = fmt.mode == "affine" and fmt.bits in (2, 4, 8)
    return is_affine and dtype.itemsize == 2


def integers(rows: Array, fmt: Format) -> tuple[Array, Array]:
    """The integers, in the order in which lanes need them, and the step of each group."""
    groups = reshape(rows, (rows.shape[0], -1, fmt.group_size))
    least = 2.0**-100  # of all zeros
    steps = maximum(abs(groups).max(-1), least) / _LARGEST
    values = reshape(round(groups / steps[..., None]).astype(int16), rows.shape)
    pairs = 16 // fmt.bits
    if missing := -rows.shape[1] % (2 * pairs * _LANES):
        values = pad(values, [(0, 0), (0, missing)])
    words = reshape(values, (rows.shape[0], -1, _LANES, 2, pairs))
    return permute_dims(words, (0, 1, 4, 2, 3)), steps
