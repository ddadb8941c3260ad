"""Kernels of MLX as they are, against NumPy: a checkout of MLX is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from mlx_tree import norms, softmax
from mlx_tree.entries import library
from mlx_tree.gemm import Tiling
from mlx_tree.products import dispatch
from mlx_tree.reduce_launches import READS

Action = Callable[[], object]
#: Name, kernel, and the same in NumPy; both return their result.
Pair = tuple[str, Action, Action]


def pairs(tree: Path, tiny: bool) -> Iterator[Pair]:
    """What MLX would launch for a GEMM and for softmax and layer norm of rows, in float32."""
    rng = np.random.default_rng(0)
    size = 128 if tiny else 1024

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    a, b, x = floats(size, size), floats(size, size), floats(size, 1024)
    yield "steel GEMM", _gemm(tree, a, b), lambda: a @ b
    yield "softmax", _softmax(tree, x), lambda: _numpy_softmax(x)
    weight, bias = floats(1024), floats(1024)
    own = _layer_norm(tree, x, weight, bias)
    yield "layer norm", own, lambda: _numpy_layer_norm(x, weight, bias)


def _gemm(tree: Path, a: np.ndarray, b: np.ndarray) -> Action:
    tiling = Tiling(64, 64, 16, 2, 2)
    name = "steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2"
    lib = library(tree, "steel/gemm/kernels/steel_gemm_fused.metal")
    constants = {"has_batch": False, "use_out_source": False, "do_axpby": False}
    constants |= {"align_M": True, "align_N": True, "align_K": True}
    kernel, out, (m, k), n = lib.function(name, constants), np.empty_like(a), a.shape, b.shape[1]
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
    out, group = np.empty_like(x), norms.launch_of(size, False, READS).group

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
