"""Products of matrices by tiles ("steel"): fused with an addition, and with a split inner axis."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides, roundoff
from mlx_tree.element_types import TYPES
from mlx_tree.products import (
    COMPLEX,
    SIMD,
    assert_rounded,
    assert_scaled,
    dispatch,
    operand,
    poisoned,
    product,
    structure,
)

_FOLDER = "steel/gemm/kernels"
ALPHA, BETA = 0.5, 2.0

GEMM_PARAMS = np.dtype(
    [(name, np.int32) for name in ("M", "N", "K", "lda", "ldb", "ldd", "tiles_n", "tiles_m")]
    + [(name, np.int64) for name in ("batch_stride_a", "batch_stride_b", "batch_stride_d")]
    + [(name, np.int32) for name in ("swizzle_log", "gemm_k_iterations_aligned", "batch_ndim")],
    align=True,
)
_ADDMM_PARAMS = np.dtype(
    [("ldc", np.int32), ("fdc", np.int32), ("batch_stride_c", np.int64), ("alpha", np.float32),
     ("beta", np.float32)], align=True,
)  # fmt: skip
_SPLIT_PARAMS = np.dtype(
    [(name, np.int32) for name in (
        "M", "N", "K", "lda", "ldb", "ldc", "tiles_n", "tiles_m", "split_k_partitions",
        "split_k_partition_stride", "split_k_partition_size", "swizzle_log",
        "gemm_k_iterations_aligned")]
)  # fmt: skip


@dataclass(frozen=True)
class Tiling:
    """Tiling of a product (m, k) @ (k, n): the tile, its simdgroups, and transpositions."""

    bm: int
    bn: int
    bk: int
    wm: int
    wn: int
    transpose_a: bool = False
    transpose_b: bool = False

    #: The part of an entry's name that says it.
    PATTERN = r"_bm(?P<bm>\d+)_bn(?P<bn>\d+)_bk(?P<bk>\d+)_wm(?P<wm>\d+)_wn(?P<wn>\d+)"

    @classmethod
    def of(cls, parts: re.Match[str]) -> Tiling:
        """From a match of `PATTERN` and of "transposes", such as ``nt``."""
        numbers = [int(parts[key]) for key in ("bm", "bn", "bk", "wm", "wn")]
        return cls(*numbers, *(letter == "t" for letter in parts["transposes"]))

    @property
    def group_size(self) -> tuple[int, int, int]:
        """Threads of a threadgroup."""
        return (SIMD, self.wn, self.wm)

    def sizes(self, unaligned_mn: bool, unaligned_k: bool) -> tuple[int, int, int]:
        """M, N and K of two tiles each, the last of them with an edge where unaligned."""
        m, n = (self.bm + 5, self.bn + 3) if unaligned_mn else (self.bm, 2 * self.bn)
        return m, n, 2 * self.bk + (3 if unaligned_k else 0)

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """Tiles along n and along m."""
        return ceildiv(n, self.bn), ceildiv(m, self.bm)

    def operands(self, rng, m, n, k, dtype, batch_a=(), batch_b=()):
        """Both factors as they lie in memory."""
        shape_a = (k, m) if self.transpose_a else (m, k)
        shape_b = (n, k) if self.transpose_b else (k, n)
        return operand(rng, (*batch_a, *shape_a), dtype), operand(rng, (*batch_b, *shape_b), dtype)

    def factors(self, a, b):
        """Both factors as they are multiplied."""
        return (
            np.swapaxes(a, -1, -2) if self.transpose_a else a,
            np.swapaxes(b, -1, -2) if self.transpose_b else b,
        )

    def params(self, a, b, m, n, k, **fields) -> np.void:
        """``GEMMParams`` for factors that lie contiguously."""
        tiles_n, tiles_m = self.tiles(m, n)
        values = {
            "M": m, "N": n, "K": k, "lda": a.shape[-1], "ldb": b.shape[-1], "ldd": n,
            "tiles_n": tiles_n, "tiles_m": tiles_m, "batch_stride_d": m * n,
            "gemm_k_iterations_aligned": k // self.bk,
        }  # fmt: skip
        return structure(GEMM_PARAMS, **(values | fields))


def check_fused(library, name, dtype, tiling: Tiling, rng, *, unaligned: bool, source: str) -> None:
    """A batch of products; `source` says what is added: "none", "add" or "axpby".

    A unaligned product also has a batch of two axes, along each of which one factor is repeated.
    """
    m, n, k = tiling.sizes(unaligned, unaligned)
    batch = (2, 2) if unaligned else (2,)
    batch_a, batch_b = ((2, 1), (1, 2)) if unaligned else (batch, batch)
    a, b = tiling.operands(rng, m, n, k, dtype, batch_a, batch_b)
    c, out = operand(rng, (*batch, m, n), dtype), poisoned((*batch, m, n), dtype)
    broadcast = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)] + [c]
    strides = [element_strides(x)[:-2] for x in broadcast]
    alpha, beta = (ALPHA, BETA) if source == "axpby" else (1.0, 1.0)
    constants = {
        "has_batch": len(batch) > 1, "use_out_source": source != "none",
        "do_axpby": source == "axpby", "align_M": not unaligned, "align_N": not unaligned,
        "align_K": not unaligned,
    }  # fmt: skip
    stride_a, stride_b, stride_c = (x[-1] for x in strides)
    tiles = tiling.tiles(m, n)
    dispatch(
        library.function(name, constants), (*tiles, int(np.prod(batch))), tiling.group_size,
        A=a, B=b, C=c, D=out, batch_shape=batch,
        params=tiling.params(a, b, m, n, k, batch_stride_a=stride_a, batch_stride_b=stride_b,
                             batch_ndim=len(batch)),
        addmm_params=structure(_ADDMM_PARAMS, ldc=n, fdc=1, batch_stride_c=stride_c, alpha=alpha,
                               beta=beta),
        batch_strides=np.concatenate(strides),
    )  # fmt: skip
    exact, error = product(*tiling.factors(a, b))
    if source == "none":
        assert_rounded(out, exact, error)
    else:
        assert_scaled(out, exact, error, alpha, c, beta, work=np.dtype(np.float32))


def check_split(
    kernel, dtype, tiling: Tiling, rng, *, unaligned_mn: bool, unaligned_k: bool
) -> None:
    """Sums over parts of the inner axis, the last of which takes what the division leaves."""
    m, n, _ = tiling.sizes(unaligned_mn, False)
    parts, iterations = 2, 2
    size = iterations * tiling.bk
    k = parts * size + tiling.bk + (3 if unaligned_k else 0)
    a, b = tiling.operands(rng, m, n, k, dtype)
    out = poisoned((parts, m, n), COMPLEX if dtype == COMPLEX else np.float32)
    tiles_n, tiles_m = tiling.tiles(m, n)
    params = structure(
        _SPLIT_PARAMS, M=m, N=n, K=k, lda=a.shape[1], ldb=b.shape[1], ldc=n, tiles_n=tiles_n,
        tiles_m=tiles_m, split_k_partitions=parts, split_k_partition_stride=m * n,
        split_k_partition_size=size, gemm_k_iterations_aligned=iterations,
    )  # fmt: skip
    dispatch(kernel, (tiles_n, tiles_m, parts), tiling.group_size, A=a, B=b, C=out, params=params)
    a, b = tiling.factors(a, b)
    for chunk, (start, stop) in zip(out, ((0, size), (size, k)), strict=True):
        assert_rounded(chunk, *product(a[:, start:stop], b[start:stop]))


def check_flat_split(library, name, dtype, tiling: Tiling, rng, *, unaligned: bool) -> None:
    """The same for matrix units: one row of threadgroups, and a last part that may be shorter."""
    m, n, _ = tiling.sizes(unaligned, False)
    size, parts = 2 * tiling.bk, 2
    k = parts * size - (tiling.bk - 3 if unaligned else 0)
    a, b = tiling.operands(rng, m, n, k, dtype)
    out = poisoned((parts, m, n), np.float32)
    tiles_n, tiles_m = tiling.tiles(m, n)
    params = structure(
        _SPLIT_PARAMS, M=m, N=n, K=k, lda=a.shape[1], ldb=b.shape[1], ldc=n, tiles_n=tiles_n,
        tiles_m=tiles_m, split_k_partitions=parts, split_k_partition_stride=m * n,
        split_k_partition_size=size, gemm_k_iterations_aligned=size // tiling.bk,
    )  # fmt: skip
    kernel = library.function(name, {"align_M": not unaligned, "align_N": not unaligned})
    dispatch(kernel, (tiles_n * tiles_m * parts, 1, 1), tiling.group_size, A=a, B=b, C=out,
             params=params)  # fmt: skip
    a, b = tiling.factors(a, b)
    for chunk, start in zip(out, (0, size), strict=True):
        span = slice(start, start + size)
        assert_rounded(chunk, *product(a[:, span], b[span]))


def check_accumulation(kernel, dtype, rng, *, axpby: bool) -> None:
    """The sum of those parts."""
    m, n, parts = 5, 33, 3
    split = operand(rng, (parts, m, n), COMPLEX if dtype == COMPLEX else np.float32)
    c, out = operand(rng, (m, n), dtype), poisoned((m, n), dtype)
    scaling = {"C": c, "ldc": n, "fdc": 1, "alpha": ALPHA, "beta": BETA} if axpby else {}
    kernel(C_split=split, D=out, k_partitions=parts, partition_stride=m * n, ldd=n,
           threads=(n, m, 1), group_size=(32, 1, 1), **scaling)  # fmt: skip
    exact, error = product(np.ones((1, parts)), split.reshape(parts, m * n))
    exact, error = exact.reshape(m, n), error.reshape(m, n)
    if axpby:
        # The operands are rounded to the result's type before they are scaled.
        error = error + roundoff(np.float32 if dtype == COMPLEX else dtype) * np.abs(exact)
        assert_scaled(out, exact, error, ALPHA, c, BETA)
    else:
        assert_rounded(out, exact, error)


_FUSED = re.compile(
    rf"steel_gemm_fused_(?:nax_)?(?P<transposes>[nt]{{2}})_(?P<dtype>\w+?)_\w+?{Tiling.PATTERN}$"
)
_SPLIT = re.compile(
    rf"steel_gemm_splitk_(?P<transposes>[nt]{{2}})_(?P<dtype>\w+?)_\w+?{Tiling.PATTERN}"
    r"_MN_(?P<mn>[tn])aligned_K_(?P<k>[tn])aligned$"
)
_FLAT_SPLIT = re.compile(
    rf"steel_gemm_splitk_nax_(?P<transposes>[nt]{{2}})_(?P<dtype>\w+?)_\w+?{Tiling.PATTERN}$"
)
_ACCUMULATION = re.compile(
    r"steel_gemm_splitk_accum_(?P<dtype>[a-z]+\d+)_[a-z]+\d+(?P<axpby>_axbpy)?$"
)


def check_fused_entry(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _FUSED.match(name)
    assert parts, name
    dtype, tiling = TYPES[parts["dtype"]], Tiling.of(parts)
    check_fused(library, name, dtype, tiling, rng, unaligned=False, source="none")
    # MLX never asks for a complex sum here: its epilogue would drop the imaginary parts.
    source = "none" if dtype == COMPLEX else "axpby"
    check_fused(library, name, dtype, tiling, rng, unaligned=True, source=source)


def check_split_entry(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    kernel = library.function(name)
    parts = _ACCUMULATION.match(name)
    if parts:
        check_accumulation(kernel, TYPES[parts["dtype"]], rng, axpby=bool(parts["axpby"]))
        return
    parts = _SPLIT.match(name)
    assert parts, name
    sizes = {"unaligned_mn": parts["mn"] == "n", "unaligned_k": parts["k"] == "n"}
    check_split(kernel, TYPES[parts["dtype"]], Tiling.of(parts), rng, **sizes)


def check_flat_split_entry(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _FLAT_SPLIT.match(name)
    assert parts, name
    for unaligned in (False, True):
        check_flat_split(
            library, name, TYPES[parts["dtype"]], Tiling.of(parts), rng, unaligned=unaligned
        )


FAMILIES = (
    Family("steel gemm", (f"{_FOLDER}/steel_gemm_fused.metal",), check_fused_entry),
    Family("steel gemm, split k", (f"{_FOLDER}/steel_gemm_splitk.metal",), check_split_entry),
    Family("nax gemm", (f"{_FOLDER}/steel_gemm_fused_nax.metal",), check_fused_entry),
    Family(
        "nax gemm, split k", (f"{_FOLDER}/steel_gemm_splitk_nax.metal",), check_flat_split_entry
    ),
)
