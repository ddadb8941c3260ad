"""Products of matrices whose blocks masks leave out or scale."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides
from mlx_tree.element_types import TYPES
from mlx_tree.gemm import Tiling
from mlx_tree.gemv import blocked_groups, unaligned_sizes
from mlx_tree.products import assert_rounded, dispatch, operand, poisoned, product

_MASKS = r"outmask_(?P<out>bool_|nomask|[a-z]+\d+)_opmask_(?P<op>bool_|nomask|[a-z]+\d+)"
_GEMV = re.compile(
    rf"gemv_(?P<t>t_)?{_MASKS}_(?P<dtype>[a-z]+\d+)"
    r"_bm(?P<bm>\d+)_bn(?P<bn>\d+)_sm(?P<sm>\d+)_sn(?P<sn>\d+)_tm(?P<tm>\d+)_tn(?P<tn>\d+)"
    r"_nc(?P<nc>\d)$"
)
_GEMM = re.compile(
    rf"steel_gemm_block_{_MASKS}_(?P<transposes>[nt]{{2}})_(?P<dtype>[a-z]+\d+)_[a-z]+\d+"
    rf"{Tiling.PATTERN}_MN_(?P<mn>[tn])aligned_K_(?P<k>[tn])aligned$"
)


class Mask:
    """A factor for each block: none at all, true or false, or powers of two and zero."""

    def __init__(self, kind: str, shape, rng) -> None:
        self.factors = np.ones(shape)
        self.array: np.ndarray | None = None
        if kind == "bool_":
            self.factors = rng.integers(0, 2, shape).astype(np.float64)
            self.array = self.factors.astype(bool)
        elif kind != "nomask":
            self.factors = rng.choice([0.0, 0.5, 1.0, 2.0], shape)
            self.array = self.factors.astype(TYPES[kind])

    def over(self, rows: int, columns: int, block_rows: int, block_columns: int) -> np.ndarray:
        """The factors of single elements."""
        grown = np.repeat(np.repeat(self.factors, block_rows, axis=-2), block_columns, axis=-1)
        return grown[..., :rows, :columns]


def check_masked_gemv(kernel, dtype, block, rng, *, masks, transposed=False, batch=(2,)) -> None:
    """A batch of products; `masks` are the kinds of those of the result and of the operands."""
    bm, bn, sm, sn, tm, tn = block
    edge = bm * sm * tm if transposed else bn * sn * tn
    size, length = unaligned_sizes(block, transposed)
    size = max(size, edge + 5)
    shape = (length, size) if transposed else (size, length)
    matrices, vectors = operand(rng, (*batch, *shape), dtype), operand(rng, (*batch, length), dtype)
    blocks, steps = ceildiv(size, edge), ceildiv(length, edge)
    out_mask = Mask(masks[0], (*batch, 1, blocks), rng)
    matrix_mask = Mask(
        masks[1], (*batch, *((steps, blocks) if transposed else (blocks, steps))), rng
    )
    vector_mask = Mask(masks[1], (*batch, 1, steps), rng)
    # Strides along the columns and the rows of the matrices [out], [matrix] and [vector].
    strides = []
    if out_mask.array is not None:
        strides += [[1, 1]]
    if matrix_mask.array is not None:
        strides += [[1, matrix_mask.factors.shape[-1]], [1, 1]]
    present = [m.array for m in (out_mask, matrix_mask, vector_mask) if m.array is not None]
    named = {"out_mask": out_mask, "mat_mask": matrix_mask, "vec_mask": vector_mask}
    out = poisoned((*batch, size), dtype)
    groups, group_size = blocked_groups(block, transposed, size, int(np.prod(batch)))
    with mtl.config.scope(strict_barriers=False):
        dispatch(
            kernel, groups, group_size, mat=matrices, in_vec=vectors, out_vec=out,
            in_vec_size=length, out_vec_size=size, marix_ld=shape[1], batch_ndim=len(batch),
            batch_shape=batch, vector_batch_stride=element_strides(vectors)[:-1],
            matrix_batch_stride=element_strides(matrices)[:-2],
            mask_strides=np.array(strides, np.int32),
            mask_batch_strides=np.concatenate([element_strides(m)[:-2] for m in present]),
            **{key: mask.array for key, mask in named.items() if mask.array is not None},
        )  # fmt: skip
    scaled = matrices.astype(np.float64) * matrix_mask.over(*shape, edge, edge)
    scaled = np.swapaxes(scaled, -1, -2) if transposed else scaled
    row = vectors[..., None, :] * vector_mask.over(1, length, 1, edge)
    exact, error = product(scaled, np.swapaxes(row, -1, -2))
    factors = out_mask.over(1, size, 1, edge)[..., 0, :]
    assert_rounded(out, factors * exact[..., 0], factors * error[..., 0])


def check_masked_gemm(
    kernel, dtype, tiling: Tiling, rng, *, masks, unaligned_mn, unaligned_k
) -> None:
    """A product whose result and factors have a mask of square blocks."""
    m, n, _ = tiling.sizes(unaligned_mn, False)
    k = tiling.bm + tiling.bk + (3 if unaligned_k else 0)
    batch = (2,)
    a, b = tiling.operands(rng, m, n, k, dtype, batch, batch)
    rows, columns, steps = (ceildiv(size, tiling.bm) for size in (m, n, k))
    out_mask = Mask(masks[0], (*batch, rows, columns), rng)
    left_mask = Mask(masks[1], (*batch, rows, steps), rng)
    right_mask = Mask(masks[1], (*batch, steps, columns), rng)
    named = {"out_mask": out_mask, "lhs_mask": left_mask, "rhs_mask": right_mask}
    present = [mask.array for mask in named.values() if mask.array is not None]
    out = poisoned((*batch, m, n), dtype)
    params = tiling.params(
        a, b, m, n, k, batch_ndim=1, batch_stride_a=a[0].size, batch_stride_b=b[0].size
    )
    dispatch(
        kernel, (*tiling.tiles(m, n), *batch), tiling.group_size, A=a, B=b, D=out, params=params,
        batch_shape=batch,
        batch_strides=np.concatenate([element_strides(x)[:1] for x in (a, b, *present)]),
        mask_strides=np.concatenate([element_strides(x)[:0:-1] for x in present]).astype(np.int32),
        **{key: mask.array for key, mask in named.items() if mask.array is not None},
    )  # fmt: skip
    a, b = tiling.factors(a, b)
    edge = tiling.bm
    # Powers of two scale exactly, also in the types of 16 bits.
    exact, error = product(
        a * left_mask.over(m, k, edge, edge), b * right_mask.over(k, n, edge, edge)
    )
    factors = out_mask.over(m, n, edge, edge)
    assert_rounded(out, factors * exact, factors * error)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    kernel, parts = library.function(name), _GEMV.match(name)
    if parts:
        block = tuple(int(parts[key]) for key in ("bm", "bn", "sm", "sn", "tm", "tn"))
        check_masked_gemv(
            kernel, TYPES[parts["dtype"]], block, rng, masks=(parts["out"], parts["op"]),
            transposed=bool(parts["t"]), batch=(2, 2) if parts["nc"] == "1" else (2,),
        )  # fmt: skip
        return
    parts = _GEMM.match(name)
    assert parts, name
    check_masked_gemm(
        kernel, TYPES[parts["dtype"]], Tiling.of(parts), rng, masks=(parts["out"], parts["op"]),
        unaligned_mn=parts["mn"] == "n", unaligned_k=parts["k"] == "n",
    )  # fmt: skip


FAMILIES = (
    Family("gemv, masked", ("gemv_masked.metal",), check),
    Family("steel gemm, masked", ("steel/gemm/kernels/steel_gemm_masked.metal",), check),
)
