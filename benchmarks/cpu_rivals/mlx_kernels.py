"""Kernels of MLX as they are, against NumPy: a checkout of MLX is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from mlx_tree import norms, softmax
from mlx_tree.entries import library
from mlx_tree.gemm import Tiling
from mlx_tree.products import dispatch

#: Elements of a row that each thread of MLX's layer norm reads.
_READS_OF_LAYER_NORM = 8

Action = Callable[[], object]
#: Name, kernel, the same in NumPy (both return their result), and how far apart they may be.
Pair = tuple[str, Action, Action, float]


def pairs(tree: Path, tiny: bool) -> Iterator[Pair]:
    """Launches of MLX for a GEMM and for softmax and layer norm of rows, against float32."""
    rng = np.random.default_rng(0)
    size = 128 if tiny else 1024

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    a, b, x = floats(size, size), floats(size, size), floats(size, 1024)
    for dtype, tolerance in ((np.float32, 1e-4), (np.float16, 1e-2), (ml_dtypes.bfloat16, 0.1)):
        name = np.dtype(dtype).name
        own = _gemm(tree, a.astype(dtype), b.astype(dtype))
        yield f"steel GEMM, {name}", own, lambda: a @ b, tolerance
    own = _gemm(tree, a, np.ascontiguousarray(b.T), transposed=True)
    yield "steel GEMM, float32, transposed", own, lambda: a @ b, 1e-4
    yield "softmax", _softmax(tree, x), lambda: _numpy_softmax(x), 1e-4
    weight, bias = floats(1024), floats(1024)
    own = _layer_norm(tree, x, weight, bias)
    yield "layer norm", own, lambda: _numpy_layer_norm(x, weight, bias), 1e-4


def _gemm(tree: Path, a: np.ndarray, b: np.ndarray, transposed: bool = False) -> Action:
    """The product with `b`, or with its transpose."""
    tiling = Tiling(64, 64, 16, 2, 2, transpose_b=transposed)
    types, form = "_".join([a.dtype.name] * 2), "nt" if transposed else "nn"
    lib = library(tree, "steel/gemm/kernels/steel_gemm_fused.metal")
    constants = {"has_batch": False, "use_out_source": False, "do_axpby": False}
    constants |= {"align_M": True, "align_N": True, "align_K": True}
    kernel = lib.function(f"steel_gemm_fused_{form}_{types}_bm64_bn64_bk16_wm2_wn2", constants)
    out, (m, k), n = np.empty_like(a), a.shape, b.shape[0 if transposed else 1]
    params = tiling.params(a, b, m, n, k, batch_ndim=1)

    def launch() -> np.ndarray:
        dispatch(
            kernel, (*tiling.tiles(m, n), 1), tiling.group_size,
            A=a, B=b, D=out, params=params, batch_shape=(1,), batch_strides=np.zeros(2, np.int64),
        )  # fmt: skip
        return out

    return launch


def _softmax(tree: Path, x: np.ndarray) -> Action:
    kernel = library(tree, "softmax.metal")["block_softmax_float32"]
    out = np.empty_like(x)

    def launch() -> np.ndarray:
        softmax.run(kernel, x, out, looped=False)
        return out

    return launch


def _layer_norm(tree: Path, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Action:
    kernel = library(tree, "layer_norm.metal")["layer_normfloat32"]
    rows, size = x.shape
    out, group = np.empty_like(x), norms.launch_of(size, False, _READS_OF_LAYER_NORM).group

    def launch() -> np.ndarray:
        kernel(x, weight, bias, out, norms.EPS, size, 1, 1, threads=rows * group, group_size=group)
        return out

    return launch


def _numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _numpy_layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + norms.EPS)
    return centred / deviation * weight + bias
