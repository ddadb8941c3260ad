"""The launch that multiplies a few rows with a quantized matrix on SIMT devices.

Its kernel is in `quantized_simt.metal`. Statements that launches of other devices have as well are
here, too.
"""

from __future__ import annotations

import functools
import math

from metalloid.arrays.ir.dtypes import DType, msl_name
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch
from metalloid.nn.quantized_formats import Format

#: With more rows it is faster to dequantize the matrix.
MAX_ROWS = 6
LANES = 32
#: Rows of the matrix for each threadgroup.
_CHUNK = 4
#: So many simdgroups read memory at its speed; up to so many share the depth of a chunk.
_MANY_SIMDGROUPS, _MAX_SHARES = 4096, 8
_ELEMENTS = {"mxfp4": "nn::MXFloat4", "nvfp4": "nn::NVFloat4", "mxfp8": "nn::MXFloat8"}
#: Statement that declares `size`.
SIZES = "const nn::Sizes size{params.rows, params.words, params.groups, params.blocks};\n"


def elements_of_lane(bits: int) -> int:
    """Elements that a lane reads at a time, as `Packed::each`."""
    return 32 // bits if 32 % bits == 0 else 32


def element_of(fmt: Format) -> str:
    """The class of the elements in MSL."""
    return f"nn::Affine<{fmt.bits}>" if fmt.mode == "affine" else _ELEMENTS[fmt.mode]


def sizes_of(fmt: Format, outputs: int, depth: int, rows: int) -> tuple[tuple[str, int], ...]:
    """The numbers of a launch."""
    sizes = {
        "rows": outputs,
        "words": depth * fmt.bits // 32,
        "groups": depth // fmt.group_size,
        "blocks": -(-depth // (elements_of_lane(fmt.bits) * LANES)),
        "rows_of_x": rows,
    }
    return tuple(sizes.items())


def chosen_by_indices(operands: int, is_affine: bool) -> str:
    """Statements that move to the matrix and the result that the last two operands choose."""
    chosen = (
        f"const uint left = x{operands - 2}[group.y], right = x{operands - 1}[group.y];\n"
        "out += long(group.y) * params.rows_of_x * params.rows;\n"
        "x0 += long(right) * params.rows * params.words;\n"
        "x1 += long(right) * params.rows * params.groups;\n"
    )
    if is_affine:
        chosen += "x2 += long(right) * params.rows * params.groups;\n"
    return chosen


@functools.lru_cache(maxsize=1024)
def simt_launch(fmt: Format, scale_dtype: DType, outputs: int, depth: int, rows: int,
                stack: Ints) -> LibraryCall:  # fmt: skip
    """The launch for rows of any type, or for as many stacks of them as `stack` has elements.

    Operands are words, scales, biases of affine formats, rows, and of stacks two rows of indices.
    """
    each = elements_of_lane(fmt.bits)
    is_affine = fmt.mode == "affine"
    count = 3 + is_affine + 2 * len(stack)
    sizes = sizes_of(fmt, outputs, depth, rows)
    chunks = -(-outputs // _CHUNK)
    block = each * LANES * (2 if 32 % fmt.bits == 0 else 1)
    shares = _shares(chunks * math.prod(stack), -(-depth // block))
    chosen = ""
    if stack:
        chosen = chosen_by_indices(count, is_affine)
        row = f"(params.words / {each * fmt.bits // 32} * {each})"
        chosen += f"x{2 + is_affine} += long(left) * params.rows_of_x * {row};\n"
    biases = "x2, x3" if is_affine else f"(device const {msl_name(scale_dtype)} *)0, x2"
    flags = f"{shares}, {str(is_affine).lower()}, {str(depth % block > 0).lower()}, is_aligned"
    function = f"multiply_combined_rows<{element_of(fmt)}, {fmt.group_size}, {_CHUNK}"
    body = (
        f"threadgroup float shared[{shares * MAX_ROWS * _CHUNK}];\n"
        + chosen
        + SIZES
        + f"nn::{function}, {flags}>(\n"
        f"    x0, x1, {biases}, out, group.x * {_CHUNK}, params.rows_of_x, size, shared,\n"
        "    simdgroup, lane);"
    )
    launch = LibraryLaunch(
        name=f"quantized_product_{fmt.mode}",
        body=body,
        files=("wide", "nn/lanes", "nn/quantized", "nn/quantized_simt"),
        reads=tuple(range(count)),
        writes=(count,),
        numbers=sizes,
        threads=(chunks * LANES * shares, math.prod(stack), 1),
        group_size=(LANES * shares, 1, 1),
        max_threads=LANES * shares,
        aligned_to=4,
        is_divisible=not stack,
    )
    return LibraryCall((launch,))


def _shares(chunks: int, blocks: int) -> int:
    """The number of simdgroups among which the blocks of a chunk of rows are divided."""
    shares = 1
    while shares < min(_MAX_SHARES, blocks) and chunks * shares < _MANY_SIMDGROUPS:
        shares *= 2
    return shares
