"""Launches that multiply a few rows with a quantized matrix, which is read once.

The kernels of few cores are in `quantized.metal` and `quantized_integers.metal`.
"""

from __future__ import annotations

import functools
import math

from metalloid.arrays.array import Array
from metalloid.arrays.functions.manipulation import pad, permute_dims, reshape
from metalloid.arrays.ir.dtypes import DType, float32, msl_name, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.nn.quantized_formats import Format
from metalloid.nn.quantized_integers import integers, takes_integers
from metalloid.nn.quantized_simt import (
    LANES,
    SIZES,
    chosen_by_indices,
    element_of,
    elements_of_lane,
    simt_launch,
    sizes_of,
)

#: Rows of the matrix for each threadgroup.
_CHUNK = 16
#: Maximum number of groups among which vector code selects scales by lane.
_MAX_SELECTED = 8


def product_of_rows(x: Array, words: Array, scales: Array, biases: Array | None, fmt: Format,
                    dtype: DType, indices: tuple[Array, Array] | None = None) -> Array:  # fmt: skip
    """Multiply rows with the transpose of a matrix; the result has shape (rows, outputs).

    Parameters
    ----------
    indices : tuple of Array, optional
        Numbers of matrices in the stacks `x` and `words`; those of a pair are multiplied. The
        result is the stack of their products.
    """
    depth, outputs = x.shape[-1], words.shape[-2]
    rows = reshape(x, (-1, depth))
    stack = () if indices is None else (indices[0].size,)
    rows_of_x = rows.shape[0] if indices is None else x.shape[-2]
    operands = [words, scales, *([] if biases is None else [biases])]
    numbers = [reshape(index.astype(uint32), (-1,)) for index in indices or ()]
    if words.device.traits.is_simt:
        operands += [rows, *numbers]
        launch = simt_launch(fmt, scales.dtype, outputs, depth, rows_of_x, stack)
    else:
        has_integers = takes_integers(x.dtype, fmt)
        rows = rows.astype(float32)
        operands += integers(rows, fmt) if has_integers else [_arranged(rows, fmt)]
        operands += [*([] if biases is None else [_sums(rows, fmt)]), *numbers]
        launch = _launch(fmt, scales.dtype, dtype, outputs, depth, rows_of_x, stack, has_integers)
    nodes = [operand._node for operand in operands]
    return Array(library_call(launch, nodes, dtype, (*stack, rows_of_x, outputs)))


def _arranged(rows: Array, fmt: Format) -> Array:
    """The elements in the order in which lanes need them."""
    each = elements_of_lane(fmt.bits)
    block = each * LANES
    if missing := -rows.shape[1] % block:
        rows = pad(rows, [(0, 0), (0, missing)])
    return permute_dims(reshape(rows, (rows.shape[0], -1, LANES, each)), (0, 1, 3, 2))


def _sums(rows: Array, fmt: Format) -> Array:
    """The sums of groups, and zeros up to a multiple of all lanes."""
    sums = reshape(rows, (rows.shape[0], -1, fmt.group_size)).sum(-1)
    missing = -sums.shape[1] % LANES
    return pad(sums, [(0, 0), (0, missing)]) if missing else sums


@functools.lru_cache(maxsize=1024)
def _launch(fmt: Format, scale_dtype: DType, dtype: DType, outputs: int, depth: int, rows: int,
            stack: Ints, has_integers: bool) -> LibraryCall:  # fmt: skip
    each = elements_of_lane(fmt.bits)
    lanes_of_group = fmt.group_size // each
    selects = LANES // lanes_of_group <= _MAX_SELECTED
    is_affine = fmt.mode == "affine"
    others = "x2, x3, x4" if is_affine else f"(device const {msl_name(scale_dtype)} *)0, x2, x2"
    count = 3 + 2 * is_affine + has_integers + 2 * len(stack)
    chosen = chosen_by_indices(count, is_affine)
    row = "params.rows_of_x * params.blocks"
    if is_affine:
        padded = "((params.groups + 31) / 32 * 32)"
        chosen += f"x{4 + has_integers} += long(left) * params.rows_of_x * {padded};\n"
    if has_integers:
        chosen += "x4 += long(left) * params.rows_of_x * params.groups;\n"
    chosen += f"x{3 if is_affine else 2} += long(left) * {row} * {each * LANES};\n"
    given = f"x0, x1, {others}"
    files = ["nn/quantized"]
    if has_integers:
        files.append("nn/quantized_integers")
        flags = f"{str(selects).lower()}, {str(depth % (each * LANES) > 0).lower()}"
        function = f"multiply_integer_rows<{fmt.bits}, {lanes_of_group}, {flags}>"
        given = "(device const ushort2 *)x0, x1, x2, (device const short2 *)x3, x4, x5"
    else:
        flags = f"{str(selects).lower()}, {str(is_affine).lower()}"
        function = f"multiply_rows<{element_of(fmt)}, {lanes_of_group}, {flags}>"
    body = (
        (chosen if stack else "") + SIZES + f"nn::{function}(\n"
        f"    {given}, out, group.x * {_CHUNK}, {_CHUNK}, params.rows_of_x, size, lane);"
    )
    launch = LibraryLaunch(
        name=f"quantized_product_{fmt.mode}",
        body=body,
        files=tuple(files),
        reads=tuple(range(count)),
        writes=(count,),
        numbers=sizes_of(fmt, outputs, depth, rows),
        threads=(math.ceil(outputs / _CHUNK) * LANES, math.prod(stack), 1),
        group_size=(LANES, 1, 1),
        max_threads=LANES,
    )
    return LibraryCall((launch,))
