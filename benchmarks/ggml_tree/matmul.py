"""Matrix products: ``mul_mv`` (vectors), ``mul_mv_ext`` (a few vectors) and ``mul_mm`` (matrices).

``dst[n, m]`` sums ``src0[m, k] src1[n, k]`` over k; several batches of src1 share one of src0.
"""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import assert_within, ceildiv, roundoff

from ggml_tree.formats import FORMATS
from ggml_tree.operands import FLOATS, TYPES, operand
from ggml_tree.source import Source, extents, run

_VECTOR = re.compile(rf"kernel_mul_mv_({TYPES})_(f32|f16|bf16)(_4|_short)?$")
_FEW = re.compile(rf"kernel_mul_mv_ext_({TYPES})_f32_r1_(\d)$")
_MATRIX = re.compile(rf"kernel_mul_mm_({TYPES})_(f32|f16)$")

#: Threadgroup memory that the host gives for tables of a format or to sum over simdgroups.
TABLE_BYTES = {
    "q8_0": 32 * 4 * 2, "mxfp4": 32 * 4, "iq4_nl": 32 * 4, "iq4_xs": 32 * 4,
    "iq2_xxs": 256 * 8 + 128, "iq2_xs": 512 * 8 + 128, "iq3_xxs": 256 * 4 + 128, "iq3_s": 512 * 4,
}  # fmt: skip
#: Roundings of a product's factors in addition to those of the sum, in float arithmetic.
_OTHER_ROUNDINGS = 40


def vector_shape(source: Source, type_: str, columns: int) -> tuple[int, int, int, int]:
    """Rows per simdgroup, simdgroups, rows per threadgroup, bytes of threadgroup memory."""
    if type_ in FLOATS:
        if columns < 32:
            return 32, 1, 32, 0
        return 2, min(4, ceildiv(columns, 128)), 2, 32 * 4 * 2
    key = type_.upper()
    rows, simdgroups = source.numbers[f"N_R0_{key}"], source.numbers[f"N_SG_{key}"]
    shared = rows if type_ == "q8_0" else rows * simdgroups
    return rows, simdgroups, shared, TABLE_BYTES.get(type_, 0)


def vector_columns(type_: str, suffix: str | None) -> tuple[int, ...]:
    """Row lengths that lead to a kernel: whole blocks, or what its suffix says."""
    if type_ in FORMATS:
        width = FORMATS[type_].width
        return (2 * width,) if width == 256 else (3 * width, 20 * width)
    return {"_short": (1, 20), "_4": (36, 512)}.get(suffix or "", (33, 131))


def _batched(rng, source, types, rows, vectors, columns):
    """Operands with batches, the product, its magnitudes, and the arguments about sizes."""
    left = operand(types[0], (1, 2, rows, columns), rng, source)
    right = operand(types[1], (2, 4, vectors, columns), rng, source)
    shared = {"r2": 2, "r3": 2}
    spread = [
        np.broadcast_to(x.repeat(2, 1), (2, 4, rows, columns))
        for x in (left.values, left.magnitudes)
    ]
    exact = right.values @ spread[0].swapaxes(-1, -2)
    magnitude = right.magnitudes @ spread[1].swapaxes(-1, -2)
    sizes = extents(left.stored, "0", columns) | extents(right.stored, "1") | shared
    sizes |= {"ne0": rows, "ne1": vectors}
    return left, right, exact, magnitude, sizes


def product_error(magnitude, columns, operand_dtype=np.float32):
    """Bound of the error of a product with factors rounded to `operand_dtype`, summed in float."""
    summed = (columns + _OTHER_ROUNDINGS) * roundoff(np.float32)
    factors = 0 if operand_dtype == np.float32 else 2.01 * roundoff(operand_dtype)
    return (factors + 1.01 * summed) * magnitude


def check_vector(source, library, name, rng):
    type_, other, suffix = _VECTOR.match(name).groups()
    # The kernels multiply two halves, or two bfloats, as such.
    factors = FLOATS[other] if type_ == other else np.float32
    for columns in vector_columns(type_, suffix):
        left, right, exact, magnitude, sizes = _batched(rng, source, (type_, other), 19, 3, columns)
        rows, simdgroups, per_group, shared = vector_shape(source, type_, columns)
        kernel = library.function(
            name,
            {
                "FC_mul_mv_nsg": simdgroups,
                "FC_mul_mv_ne12": 4,
                "FC_mul_mv_r2": 2,
                "FC_mul_mv_r3": 2,
            },
        )
        out = np.full(exact.shape, np.nan, np.float32)
        arguments = source.arguments("mul_mv", **sizes, nr0=rows)
        run(
            kernel,
            (arguments, left.buffer(), right.buffer(), out),
            (ceildiv(19, per_group), 3, 8),
            (32, simdgroups),
            shared,
        )
        assert_within(out, exact, product_error(magnitude, columns, factors))


def check_few(source, library, name, rng):
    type_, per_group = _FEW.match(name).groups()
    per_group = int(per_group)
    vectors = {2: 2, 3: 6, 4: 7, 5: 5}[per_group]
    of_blocks = type_ in FORMATS and FORMATS[type_].width == 256
    for columns, lanes in ((256, 16), (512 if of_blocks else 384, 8)):
        left, right, exact, magnitude, sizes = _batched(
            rng, source, (type_, "f32"), 19, vectors, columns
        )
        kernel = library.function(
            name,
            {"FC_mul_mv_nsg": 2, "FC_mul_mv_nxpsg": lanes, "FC_mul_mv_ne12": 4, "FC_mul_mv_r2": 2,
             "FC_mul_mv_r3": 2},
        )  # fmt: skip
        out = np.full(exact.shape, np.nan, np.float32)
        run(
            kernel,
            (source.arguments("mul_mv_ext", **sizes), left.buffer(), right.buffer(), out),
            (ceildiv(19, 2 * 32 // lanes), ceildiv(vectors, per_group), 8),
            (32, 2),
        )
        assert_within(out, exact, product_error(magnitude, columns))


def matrix_dtype(type_: str) -> type:
    """The type to which ``mul_mm`` rounds its operands."""
    return FLOATS["bf16"] if type_ == "bf16" else np.float16


def check_matrix(source, library, name, rng):
    type_, other = _MATRIX.match(name).groups()
    block = FORMATS[type_].width if type_ in FORMATS else 32
    odd = block if type_ in FORMATS else 33
    for rows, vectors, columns in ((64, 32, ceildiv(64, block) * block), (70, 35, 2 * odd)):
        left, right, exact, magnitude, sizes = _batched(
            rng, source, (type_, other), rows, vectors, columns
        )
        unaligned = rows % 64 != 0
        # Vectors of a tile, and the threadgroup memory of tiles.
        tile, shared = (
            (32, 8192 if unaligned else 4096 + 2048) if not source.tensors else (128, 4096)
        )
        kernel = library.function(
            name,
            {"FC_mul_mm_bc_inp": columns % 32 != 0, "FC_mul_mm_bc_out": unaligned,
             "FC_mul_mm_ne12": 4, "FC_mul_mm_ne13": 2, "FC_mul_mm_r2": 2, "FC_mul_mm_r3": 2},
        )  # fmt: skip
        out = np.full(exact.shape, np.nan, np.float32)
        run(
            kernel,
            (source.arguments("mul_mm", **sizes), left.buffer(), right.buffer(), out),
            (ceildiv(vectors, tile), ceildiv(rows, 64), 8),
            (128,),
            shared,
        )
        assert_within(out, exact, product_error(magnitude, columns, matrix_dtype(type_)))


#: Name, check, entries.
FAMILIES = (
    ("matrix times vector", check_vector, _VECTOR),
    ("matrix times few vectors", check_few, _FEW),
    ("matrix times matrix", check_matrix, _MATRIX),
)
