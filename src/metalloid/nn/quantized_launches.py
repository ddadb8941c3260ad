"""Launches that multiply a few rows with a quantized matrix, which is read once.

Their kernels are in `quantized.metal`, `quantized_integers.metal` and `quantized_simt.metal`.
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

#: With more rows it is faster to dequantize the matrix.
MAX_ROWS = 6
_LANES = 32
#: Rows of the matrix for each threadgroup: on a few cores, and on SIMT devices.
_CHUNK, _CHUNK_OF_SIMT = 16, 4
#: Maximum number of groups among which vector code selects scales by lane.
_MAX_SELECTED = 8
_ELEMENTS = {"mxfp4": "nn::MXFloat4", "nvfp4": "nn::NVFloat4", "mxfp8": "nn::MXFloat8"}


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
    rows = reshape(x.astype(float32), (-1, depth))
    stack = () if indices is None else (indices[0].size,)
    rows_of_x = rows.shape[0] if indices is None else x.shape[-2]
    is_simt = words.device.traits.is_simt
    has_integers = takes_integers(x.dtype, fmt, is_simt)
    operands = [words, scales, *([] if biases is None else [biases])]
    operands += integers(rows, fmt) if has_integers else [_arranged(rows, fmt)]
    has_sums = biases is not None and not is_simt
    operands += [_sums(rows, fmt)] if has_sums else []
    operands += [reshape(index.astype(uint32), (-1,)) for index in indices or ()]
    launch = _launch(fmt, scales.dtype, dtype, outputs, depth, rows_of_x, stack, is_simt,
                     has_integers)  # fmt: skip
    nodes = [operand._node for operand in operands]
    return Array(library_call(launch, nodes, dtype, (*stack, rows_of_x, outputs)))


def _elements(bits: int) -> int:
    """Elements that a lane reads at a time, as `Packed::each`."""
    return 32 // bits if 32 % bits == 0 else 32


def _arranged(rows: Array, fmt: Format) -> Array:
    """The elements in the order in which lanes need them."""
    each = _elements(fmt.bits)
    block = each * _LANES
    if missing := -rows.shape[1] % block:
        rows = pad(rows, [(0, 0), (0, missing)])
    return permute_dims(reshape(rows, (rows.shape[0], -1, _LANES, each)), (0, 1, 3, 2))


def _sums(rows: Array, fmt: Format) -> Array:
    """The sums of groups, and zeros up to a multiple of all lanes."""
    sums = reshape(rows, (rows.shape[0], -1, fmt.group_size)).sum(-1)
    missing = -sums.shape[1] % _LANES
    return pad(sums, [(0, 0), (0, missing)]) if missing else sums


@functools.lru_cache(maxsize=1024)
def _launch(fmt: Format, scale_dtype: DType, dtype: DType, outputs: int, depth: int, rows: int,
            stack: Ints, is_simt: bool, has_integers: bool) -> LibraryCall:  # fmt: skip
    each = _elements(fmt.bits)
    lanes_of_group = fmt.group_size // each
    selects = not is_simt and _LANES // lanes_of_group <= _MAX_SELECTED
    is_affine = fmt.mode == "affine"
    name = f"nn::Affine<{fmt.bits}>" if is_affine else _ELEMENTS[fmt.mode]
    chunk = _CHUNK_OF_SIMT if is_simt else _CHUNK
    others = "x2, x3, x4" if is_affine else f"(device const {msl_name(scale_dtype)} *)0, x2, x2"
    has_sums = is_affine and not is_simt
    count = 3 + is_affine + has_sums + has_integers + 2 * len(stack)
    chosen = (
        f"const uint left = x{count - 2}[group.y], right = x{count - 1}[group.y];\n"
        "out += long(group.y) * params.rows_of_x * params.rows;\n"
        "x0 += long(right) * params.rows * params.words;\n"
        "x1 += long(right) * params.rows * params.groups;\n"
    )
    row = "params.rows_of_x * params.blocks"
    if is_affine:
        chosen += "x2 += long(right) * params.rows * params.groups;\n"
    if has_sums:
        padded = "((params.groups + 31) / 32 * 32)"
        chosen += f"x{4 + has_integers} += long(left) * params.rows_of_x * {padded};\n"
    if has_integers:
        chosen += "x4 += long(left) * params.rows_of_x * params.groups;\n"
    chosen += f"x{3 if is_affine else 2} += long(left) * {row} * {each * _LANES};\n"
    given, rows_of_chunk = f"x0, x1, {others}", f"{chunk}, "
    files = ["nn/quantized"]
    if has_integers:
        files.append("nn/quantized_integers")
        flags = f"{str(selects).lower()}, {str(depth % (each * _LANES) > 0).lower()}"
        function = f"multiply_integer_rows<{fmt.bits}, {lanes_of_group}, {flags}>"
        given = "(device const ushort2 *)x0, x1, x2, (device const short2 *)x3, x4, x5"
    elif is_simt:
        files.append("nn/quantized_simt")
        has_biases, given = str(is_affine).lower(), given.rpartition(",")[0]  # without the sums
        function = f"multiply_combined_rows<{name}, {lanes_of_group}, {chunk}, {has_biases}>"
        rows_of_chunk = ""
    else:
        flags = f"{str(selects).lower()}, {str(is_affine).lower()}"
        function = f"multiply_rows<{name}, {lanes_of_group}, {flags}>"
    body = (
        (chosen if stack else "")
        + "const nn::Sizes size{params.rows, params.words, params.groups, params.blocks};\n"
        f"nn::{function}(\n"
        f"    {given}, out, group.x * {chunk}, {rows_of_chunk}params.rows_of_x, size, lane);"
    )
    sizes = {
        "rows": outputs,
        "words": depth * fmt.bits // 32,
        "groups": depth // fmt.group_size,
        "blocks": -(-depth // (each * _LANES)),
        "rows_of_x": rows,
    }
    launch = LibraryLaunch(
        name=f"quantized_product_{fmt.mode}",
        body=body,
        files=tuple(files),
        reads=tuple(range(count)),
        writes=(count,),
        numbers=tuple(sizes.items()),
        threads=(math.ceil(outputs / chunk) * _LANES, math.prod(stack), 1),
        group_size=(_LANES, 1, 1),
        max_threads=_LANES,
    )
    return LibraryCall((launch,))
