"""Layer and RMS norm: our own kernels in the style of MLX, whose norms are in no header.

MLX's own are in its tree: test_tree.py.
"""

import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree.agreement import BFLOAT, FLOAT, HALF, NAMES, SIZES, assert_within, roundoff
from mlx_tree.norms import EPS, launch_of, normalised
from mlx_tree.reduce_launches import MAX_THREADS, READS


def launch(size):
    return launch_of(size, size > MAX_THREADS * READS, READS)


def assert_norm(out, x, weight, bias, centred, additions):
    """The norm, its product with the weight and the sum with the bias are in float."""
    exact, error = normalised(x.astype(np.float64), centred, additions)
    w, b = weight.astype(np.float64), bias.astype(np.float64)
    result = exact * w + b
    error = error * np.abs(w) + 2 * 2.0**-24 * (np.abs(result) + np.abs(b))
    assert_within(out, result, error + roundoff(x.dtype) * (np.abs(result) + error))


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
@pytest.mark.parametrize("has_weight", [False, True])
@pytest.mark.sample(1)
def test_layer_norm(has_weight, dtype, rng):
    run = kernel("layer_norm", f"layer_norm_{NAMES[dtype]}", {"has_weight": has_weight})
    for size in SIZES[1:]:
        x = (rng.normal(size=(3, size)) + 1).astype(dtype)
        weight, bias = rng.normal(size=(2, size)).astype(dtype)
        out = np.empty_like(x)
        group, additions = launch(size)
        run(x, weight, bias, out, EPS, size, threads=3 * group, group_size=group)
        if not has_weight:
            weight, bias = np.ones(1, dtype), np.zeros(1, dtype)
        assert_norm(out, x, weight, bias, True, additions)


@pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=NAMES.get)
@pytest.mark.sample(1)
def test_rms_norm(dtype, rng):
    run = kernel("layer_norm", f"rms_norm_{NAMES[dtype]}", {"has_weight": True})
    for size in SIZES:
        x = rng.normal(size=(3, size)).astype(dtype)
        weight = rng.normal(size=size).astype(dtype)
        out = np.empty_like(x)
        group, additions = launch(size)
        run(x, weight, weight, out, EPS, size, threads=3 * group, group_size=group)
        assert_norm(out, x, weight, np.zeros(1), False, additions)
