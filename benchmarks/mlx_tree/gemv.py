"""Matrices times vectors: plain, transposed, gathered by index, and a few vectors at a time."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides
from mlx_tree.element_types import TYPES
from mlx_tree.products import (
    SIMD,
    assert_rounded,
    assert_scaled,
    dispatch,
    operand,
    poisoned,
    product,
)

_BLOCKED = re.compile(
    r"gemv_(?P<t>t_)?(?P<gather>gather_)?(?P<dtype>[a-z]+\d+)_bm(\d+)_bn(\d+)_sm(\d+)_sn(\d+)"
    r"_tm(\d+)_tn(\d+)(?:_nc(?P<nc>\d)_axpby(?P<axpby>\d))?$"
)
_WIDE = re.compile(r"gemv_wide_(?P<gather>gather_)?(?P<dtype>[a-z]+\d+)_nv(\d+)_kl(\d+)$")
ALPHA, BETA = 0.5, 2.0


def blocked_groups(block, transposed: bool, size: int, batch: int):
    """Threadgroups, and their size, for results of `size` numbers each."""
    bm, bn, sm, sn, tm, tn = block
    per_group = bn * sn * tn if transposed else bm * sm * tm
    return (ceildiv(size, per_group), 1, batch), (SIMD, bn, bm)


def unaligned_sizes(block, transposed: bool) -> tuple[int, int]:
    """Sizes of result and vector, each a block and a bit."""
    bm, bn, sm, sn, tm, tn = block
    rows, columns = bm * sm * tm, bn * sn * tn
    return (columns + 5, rows + 3) if transposed else (rows + 5, columns + 3)


def check_gemv(kernel, dtype, block, rng, *, transposed=False, batch=(3,), with_bias=False,
               sizes=None):  # fmt: skip
    """Products of a batch of matrices and vectors; a batch of two axes has them broadcast."""
    size, length = sizes or unaligned_sizes(block, transposed)
    shape = (length, size) if transposed else (size, length)
    matrices = np.broadcast_to(operand(rng, (batch[-1], *shape), dtype), (*batch, *shape))
    of_vectors = (*batch[:-1], 1) if len(batch) > 1 else batch
    vectors = np.broadcast_to(operand(rng, (*of_vectors, length), dtype), (*batch, length))
    bias = operand(rng, (*batch, size, 2), dtype)
    out = poisoned((*batch, size), dtype)
    groups, group_size = blocked_groups(block, transposed, size, int(np.prod(batch)))
    axpby = {
        "bias": bias, "alpha": ALPHA, "beta": BETA, "bias_stride": 2,
        "bias_batch_stride": element_strides(bias)[:-2],
    }  # fmt: skip
    with mtl.config.scope(strict_barriers=False):
        dispatch(
            kernel, groups, group_size, mat=_memory(matrices), in_vec=_memory(vectors),
            out_vec=out, in_vec_size=length, out_vec_size=size, marix_ld=shape[1],
            batch_ndim=len(batch), batch_shape=batch,
            vector_batch_stride=element_strides(vectors)[:-1],
            matrix_batch_stride=element_strides(matrices)[:-2], **(axpby if with_bias else {}),
        )  # fmt: skip
    exact, error = _matrix_times(matrices, vectors, transposed)
    if with_bias:
        assert_scaled(out, exact, error, ALPHA, bias[..., 0], BETA)
    else:
        assert_rounded(out, exact, error)


def check_gather(kernel, dtype, block, rng, *, transposed=False):
    """Matrices and vectors chosen by index, one product a batch."""
    size, length = unaligned_sizes(block, transposed)
    shape = (length, size) if transposed else (size, length)
    matrices, vectors = operand(rng, (3, *shape), dtype), operand(rng, (2, 5, length), dtype)
    which_matrix = np.array([2, 0, 1, 2], np.uint32)
    which_vector = np.array([9, 0, 4, 2], np.uint32)
    out = poisoned((4, size), dtype)
    groups, group_size = blocked_groups(block, transposed, size, 4)
    with mtl.config.scope(strict_barriers=False):
        dispatch(
            kernel, groups, group_size, mat=matrices, in_vec=vectors, out_vec=out,
            in_vec_size=length, out_vec_size=size, marix_ld=shape[1], **_gathering(
                vectors, 1, matrices, which_vector, which_matrix),
        )  # fmt: skip
    chosen = vectors.reshape(-1, length)[which_vector]
    assert_rounded(out, *_matrix_times(matrices[which_matrix], chosen, transposed))


def _gathering(vectors, vector_axes, matrices, which_vector, which_matrix):
    """The arguments that say how indices become offsets; `vector_axes` are those of one operand."""
    return {
        "batch_ndim": 1, "batch_shape": which_vector.shape, "index_batch_strides": [1, 1],
        "vector_batch_ndim": vectors.ndim - vector_axes,
        "vector_batch_shape": vectors.shape[:-vector_axes],
        "vector_batch_stride": element_strides(vectors)[:-vector_axes],
        "matrix_batch_ndim": matrices.ndim - 2, "matrix_batch_shape": matrices.shape[:-2],
        "matrix_batch_stride": element_strides(matrices)[:-2],
        "vec_indices": which_vector, "mat_indices": which_matrix,
    }  # fmt: skip


def check_wide(library, name, dtype, vectors_per_group, lanes, rng, *, gather=False):
    """A few vectors at a time: rows of 4 k elements, read as vectors of four."""
    count, rows, columns = 2 * vectors_per_group + 1, 4 * 2 + 1, 4 * (lanes * 8 + 3)
    for batched, with_bias in ((False, False), (False, True), (True, False), (True, True)):
        if gather and (batched or with_bias):
            continue
        batch = (2, 2) if batched else (3,)
        constants = {"gemv_wide_do_axpby": with_bias}
        if not gather:
            constants["gemv_wide_has_batch"] = batched
        matrices = operand(rng, (*batch, rows, columns), dtype)
        vectors = operand(rng, (*batch, count, columns), dtype)
        bias = operand(rng, (*batch, count, rows), dtype)
        out = poisoned((*batch, count, rows), dtype)
        arguments = {
            "batch_ndim": len(batch), "batch_shape": batch,
            "vector_batch_stride": element_strides(vectors)[:-2],
            "matrix_batch_stride": element_strides(matrices)[:-2],
        }  # fmt: skip
        if with_bias:
            arguments |= {
                "bias": bias, "alpha": ALPHA, "beta": BETA, "bias_ld": rows, "bias_fd": 1,
                "bias_batch_stride": element_strides(bias)[:-2],
            }  # fmt: skip
        chosen_matrices, chosen_vectors = matrices, vectors
        if gather:
            which_matrix, which_vector = np.array([[2, 0, 1], [1, 2, 0]], np.uint32)
            arguments = _gathering(vectors, 2, matrices, which_vector, which_matrix)
            chosen_matrices, chosen_vectors = matrices[which_matrix], vectors[which_vector]
        # Three passes over two columns of threadgroups: the first takes the last chunk, too.
        dispatch(
            library.function(name, constants), (2, ceildiv(rows, 4), int(np.prod(batch))),
            (SIMD, lanes // 8, 1), mat=matrices, in_vec=vectors, out_vec=out, in_vec_size=columns,
            out_vec_size=rows, M=count, matrix_ld=columns, vector_ld=columns, **arguments,
        )  # fmt: skip
        exact, error = product(chosen_vectors, np.swapaxes(chosen_matrices, -1, -2))
        if with_bias:
            assert_scaled(out, exact, error, ALPHA, bias, BETA, work=np.dtype(np.float32))
        else:
            assert_rounded(out, exact, error)


def _memory(view: np.ndarray) -> np.ndarray:
    """The array that a broadcast view repeats."""
    return view[tuple(slice(0, 1) if step == 0 else slice(None) for step in view.strides)]


def _matrix_times(matrices, vectors, transposed):
    matrices = np.swapaxes(matrices, -1, -2) if transposed else matrices
    exact, error = product(matrices, vectors[..., None])
    return exact[..., 0], error[..., 0]


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    wide = _WIDE.match(name)
    if wide:
        dtype, gather = TYPES[wide["dtype"]], bool(wide["gather"])
        check_wide(library, name, dtype, int(wide[3]), int(wide[4]), rng, gather=gather)
        return
    parts = _BLOCKED.match(name)
    assert parts, name
    block = tuple(int(parts[n]) for n in range(4, 10))
    kernel, dtype, transposed = library.function(name), TYPES[parts["dtype"]], bool(parts["t"])
    if parts["gather"]:
        check_gather(kernel, dtype, block, rng, transposed=transposed)
    else:
        batch = (2, 3) if parts["nc"] == "1" else (3,)
        with_bias = parts["axpby"] == "1"
        check_gemv(
            kernel, dtype, block, rng, transposed=transposed, batch=batch, with_bias=with_bias
        )


FAMILIES = (Family("gemv", ("gemv.metal",), check),)
