"""Products of matrices chosen by indices, and of segments of the inner axis."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, element_strides
from mlx_tree.element_types import TYPES
from mlx_tree.gemm import Tiling
from mlx_tree.products import assert_rounded, dispatch, poisoned, product

_FOLDER = "steel/gemm/kernels"
_NAME = re.compile(
    r"steel_(?P<form>gather_mm_rhs|gather_mm|segmented_mm)_(?:nax_)?(?P<transposes>[nt]{2})"
    rf"_(?P<dtype>[a-z]+\d+)_[a-z]+\d+{Tiling.PATTERN}$"
)


def _alignment(unaligned: bool) -> dict[str, bool]:
    return dict.fromkeys(("align_M", "align_N", "align_K"), not unaligned)


def check_gather_rhs(library, name, dtype, tiling: Tiling, rng, *, unaligned: bool) -> None:
    """Each row of the left factor times the matrix that its index says; the indices ascend."""
    m, n, k = tiling.sizes(unaligned, unaligned)
    a, b = tiling.operands(rng, m, n, k, dtype, batch_b=(3,))
    indices = np.sort(rng.integers(0, 3, m)).astype(np.uint32)
    out = poisoned((m, n), dtype)
    params = tiling.params(a, b, m, n, k, batch_stride_b=b[0].size, batch_stride_d=0)
    kernel = library.function(name, _alignment(unaligned))
    # The simdgroups of NAX kernels go through the matrices of their own rows.
    with mtl.config.scope(strict_barriers=False):
        dispatch(kernel, (*tiling.tiles(m, n), 1), tiling.group_size, A=a, B=b, C=out,
                 rhs_indices=indices, params=params)  # fmt: skip
    a, b = tiling.factors(a, b)
    exact, error = product(a[:, None, :], b[indices])
    assert_rounded(out, exact[:, 0], error[:, 0])


def check_gather(library, name, dtype, tiling: Tiling, rng, *, unaligned: bool) -> None:
    """Products of pairs of matrices; unaligned ones have indices of two axes, some shared."""
    m, n, k = tiling.sizes(unaligned, unaligned)
    a, b = tiling.operands(rng, m, n, k, dtype, batch_a=(2, 2), batch_b=(3,))
    left, right = np.array([3, 0, 2], np.uint32), np.array([1, 1, 2], np.uint32)
    if unaligned:
        left, right = np.broadcast_to(left[:2, None], (2, 2)), np.array([[1, 0], [2, 1]], np.uint32)
    out = poisoned((*left.shape, m, n), dtype)
    params = tiling.params(
        a, b, m, n, k, batch_ndim=left.ndim, batch_stride_a=element_strides(left)[0],
        batch_stride_b=element_strides(right)[0],
    )  # fmt: skip
    kernel = library.function(name, _alignment(unaligned) | {"has_batch": left.ndim > 1})
    dispatch(
        kernel, (*tiling.tiles(m, n), left.size), tiling.group_size, A=a, B=b, C=out, params=params,
        lhs_indices=np.ascontiguousarray(left[:, 0]) if unaligned else left, rhs_indices=right,
        indices_shape=left.shape, lhs_strides=element_strides(left),
        rhs_strides=element_strides(right), batch_ndim_a=2, batch_shape_a=a.shape[:2],
        batch_strides_a=[2 * a[0, 0].size, a[0, 0].size], batch_ndim_b=1, batch_shape_b=b.shape[:1],
        batch_strides_b=[b[0].size],
    )  # fmt: skip
    a, b = tiling.factors(a, b)
    assert_rounded(out, *product(a.reshape(4, m, k)[left], b[right]))


def check_segments(library, name, dtype, tiling: Tiling, rng, *, unaligned: bool) -> None:
    """Products of parts of the inner axis, one of them empty; unaligned ones follow each other."""
    m, n, _ = tiling.sizes(unaligned, False)
    k = 3 * tiling.bk + 3
    a, b = tiling.operands(rng, m, n, k, dtype)
    bounds = np.array([0, 2 * tiling.bk, 2 * tiling.bk, k], np.uint32)
    pairs = np.stack([bounds[:-1], bounds[1:]], axis=1)
    segments = pairs[::-1].copy() if not unaligned else bounds
    out = poisoned((3, m, n), dtype)
    constants = {
        "segments_contiguous": not unaligned,
        "align_M": not unaligned,
        "align_N": not unaligned,
    }
    groups: tuple[int, ...] = (*tiling.tiles(m, n), 3)
    if "_nax_" in name and tiling.bk <= 64:
        groups = (3, *tiling.tiles(m, n))
    dispatch(library.function(name, constants), groups, tiling.group_size, A=a,
             B=b, C=out, segments=segments, params=tiling.params(a, b, m, n, k))  # fmt: skip
    a, b = tiling.factors(a, b)
    for chunk, (start, stop) in zip(out, pairs if unaligned else segments, strict=True):
        assert_rounded(chunk, *product(a[:, start:stop], b[start:stop]))


_CHECKS = {
    "gather_mm_rhs": check_gather_rhs,
    "gather_mm": check_gather,
    "segmented_mm": check_segments,
}


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _NAME.match(name)
    assert parts, name
    for unaligned in (False, True):
        _CHECKS[parts["form"]](
            library, name, TYPES[parts["dtype"]], Tiling.of(parts), rng, unaligned=unaligned
        )


FAMILIES = (
    Family("steel gather gemm", (f"{_FOLDER}/steel_gemm_gather.metal",), check),
    Family("steel segmented gemm", (f"{_FOLDER}/steel_gemm_segmented.metal",), check),
    Family("nax gather gemm", (f"{_FOLDER}/steel_gemm_gather_nax.metal",), check),
    Family("nax segmented gemm", (f"{_FOLDER}/steel_gemm_segmented_nax.metal",), check),
)
