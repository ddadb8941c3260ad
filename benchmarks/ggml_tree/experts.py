"""Matrix products with a matrix chosen for each token: ``mul_mv_id``, ``mul_mm_id`` and its map."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import assert_within, ceildiv

from ggml_tree.formats import FORMATS
from ggml_tree.matmul import matrix_dtype, product_error, vector_columns, vector_shape
from ggml_tree.operands import TYPES, operand
from ggml_tree.source import extents, run

_VECTOR = re.compile(rf"kernel_mul_mv_id_({TYPES})_f32(_4)?$")
_MATRIX = re.compile(rf"kernel_mul_mm_id_({TYPES})_(f32|f16)$")
_MAP = re.compile(r"kernel_mul_mm_id_map0_ne20_(\d+)$")
_ADD = re.compile(r"kernel_add_id$")

_EXPERTS = 4


def _chosen(rng, tokens, used, experts=_EXPERTS):
    """Different experts for each token."""
    return np.stack([rng.permutation(experts)[:used] for _ in range(tokens)]).astype(np.int32)


def _product(left, right, ids):
    """``out[token, slot] = left[ids[token, slot]] @ right[token, slot % shared]``."""
    slots = np.arange(ids.shape[1]) % right.values.shape[1]
    pairs = ((left.values, right.values), (left.magnitudes, right.magnitudes))
    return [np.einsum("tsmk,tsk->tsm", a[ids], b[:, slots]) for a, b in pairs]


def check_vector(source, library, name, rng):
    type_, suffix = _VECTOR.match(name).groups()
    rows, tokens, used = 19, 3, 2
    for columns, shared in zip(vector_columns(type_, suffix), (1, 2), strict=False):
        left = operand(type_, (_EXPERTS, rows, columns), rng, source)
        right = operand("f32", (tokens, shared, columns), rng, source)
        ids = _chosen(rng, tokens, used)
        exact, magnitude = _product(left, right, ids)
        out = np.full(exact.shape, np.nan, np.float32)
        each, simdgroups, per_group, bytes_ = vector_shape(source, type_, columns)
        kernel = library.function(
            name,
            {
                "FC_mul_mv_nsg": simdgroups,
                "FC_mul_mv_ne12": 1,
                "FC_mul_mv_r2": 1,
                "FC_mul_mv_r3": 1,
            },
        )
        arguments = source.arguments(
            "mul_mv_id", **extents(left.stored, "0", columns), **extents(right.stored, "1"),
            **extents(out), nei0=used, nei1=tokens, nbi1=ids.strides[0], nr0=each,
        )  # fmt: skip
        run(
            kernel,
            (arguments, left.buffer(), right.buffer(), out, ids),
            (ceildiv(rows, per_group), 1, used * tokens),
            (32, simdgroups),
            bytes_,
        )
        assert_within(out, exact, product_error(magnitude, columns))


def _map(source, library, name, ids, right, experts):
    """Run the kernel that lists the tokens of each expert: ``(counts, lists)``."""
    tokens, used = ids.shape
    counts = np.full(experts, -1, np.int32)
    lists = np.full((experts + 1, tokens), -1, np.int32)
    arguments = source.arguments(
        "mul_mm_id_map0", **extents(right, "1"), ne02=experts, ne20=used, ne21=tokens,
        nb21=ids.strides[0],
    )  # fmt: skip
    run(
        library.function(name),
        (arguments, ids, counts, lists),
        (1,),
        (experts,),
        experts * used * 2,
    )
    return counts, lists


def check_map(source, library, name, rng):
    used = int(_MAP.match(name)[1])
    experts, tokens = used + 3, 37
    ids = _chosen(rng, tokens, used, experts)
    right = np.zeros((tokens, 1, 64), np.float32)
    counts, lists = _map(source, library, name, ids, right, experts)
    for expert in range(experts):
        expected = np.flatnonzero(ids.reshape(-1) == expert)
        assert counts[expert] == len(expected)
        np.testing.assert_array_equal(lists[expert, : len(expected)], expected)


def check_matrix(source, library, name, rng):
    type_, other = _MATRIX.match(name).groups()
    rows, tokens, used = 70, 40, 2
    columns = max(64, FORMATS[type_].width) if type_ in FORMATS else 72
    left = operand(type_, (_EXPERTS, rows, columns), rng, source)
    right = operand(other, (tokens, 1, columns), rng, source)
    ids = _chosen(rng, tokens, used)
    exact, magnitude = _product(left, right, ids)
    counts, lists = _map(
        source, library, f"kernel_mul_mm_id_map0_ne20_{used}", ids, right.stored, _EXPERTS
    )
    out = np.full(exact.shape, np.nan, np.float32)
    arguments = source.arguments(
        "mul_mm_id", **extents(left.stored, "0", columns), **extents(right.stored, "1"),
        **extents(out), ne20=used, ne21=tokens, r2=1, r3=1,
    )  # fmt: skip
    kernel = library.function(name, {"FC_mul_mm_bc_inp": columns % 32 != 0})
    run(
        kernel,
        (arguments, left.buffer(), right.buffer(), counts, lists, out),
        (ceildiv(tokens, 32), ceildiv(rows, 64), _EXPERTS),
        (128,),
        8192,
    )
    assert_within(out, exact, product_error(magnitude, columns, matrix_dtype(type_)))


def check_add(source, library, name, rng):
    """The row of the chosen expert added to each row."""
    x = rng.normal(size=(5, 2, 70)).astype(np.float32)
    rows = rng.normal(size=(_EXPERTS, 70)).astype(np.float32)
    ids = _chosen(rng, 5, 2)
    out = np.full_like(x, np.nan)
    sizes = extents(x, "0") | extents(rows, "1") | extents(ids, "2") | extents(out)
    arguments = source.arguments("add_id", **sizes)
    run(library.function(name), (arguments, x, rows, ids, out), (2, 5), (32,))
    np.testing.assert_array_equal(out, x + rows[ids])


FAMILIES = (
    ("chosen matrix times vector", check_vector, _VECTOR),
    ("sum with chosen row", check_add, _ADD),
    ("map of chosen matrices", check_map, _MAP),
    ("chosen matrix times matrix", check_matrix, _MATRIX),
)
