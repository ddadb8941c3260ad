"""Layer and RMS norm: our own kernels in the style of MLX, whose norms are in no header."""

import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree.agreement import (
    BFLOAT,
    FLOAT,
    HALF,
    NAMES,
    SIZES,
    assert_within,
    ceildiv,
    roundoff,
    sum_error,
)

SIMD = 32
READS = 4  # values that a thread reads at once
MAX_THREADS = 1024
#: A value goes through this many additions in simd_sum, then once more across the simdgroups.
TWO_SIMD_SUMS = 2 * (SIMD - 1)


def row_group(size):
    """Threads that read a row four values at a time, in whole simdgroups."""
    return min(MAX_THREADS, SIMD * ceildiv(ceildiv(size, READS), SIMD))


@pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
@pytest.mark.parametrize("has_weight", [False, True])
def test_layer_norm(has_weight, dtype, rng):
    run = kernel("layer_norm", f"layer_norm_{NAMES[dtype]}", {"has_weight": has_weight})
    for size in SIZES[1:]:
        x = (rng.normal(size=(3, size)) + 1).astype(dtype)
        weight, bias = rng.normal(size=(2, size)).astype(dtype)
        out = np.empty_like(x)
        group = row_group(size)
        eps = np.float32(1e-5)
        run(x, weight, bias, out, eps, size, threads=3 * group, group_size=group)
        wide = x.astype(np.float64)
        mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
        scale = 1 / np.sqrt(variance + np.float64(eps))
        exact = (wide - mean) * scale
        # Mean and variance are sums; a wrong mean moves every difference, and a relative error of
        # the variance is halved by the root.
        additions = ceildiv(size, group) + READS + TWO_SIMD_SUMS
        of_mean = (sum_error(wide, additions, axis=1) / size)[:, None] + 2.0**-24 * np.abs(mean)
        of_difference = of_mean + 2.0**-24 * np.abs(wide - mean)
        largest = of_difference.max(axis=1, keepdims=True)
        spread = np.abs(wide - mean).mean(axis=1, keepdims=True)
        of_variance = 2 * spread * largest + largest**2 + (additions + 3) * 2.0**-24 * variance
        relative = of_variance / (variance + np.float64(eps)) / 2 + 4 * 2.0**-23
        error = of_difference * scale * (1 + relative) + np.abs(exact) * relative
        if has_weight:
            exact = exact * weight.astype(np.float64) + bias.astype(np.float64)
            error = error * np.abs(weight.astype(np.float64)) + 2 * 2.0**-24 * (
                np.abs(exact) + np.abs(bias.astype(np.float64))
            )
        assert_within(out, exact, error + roundoff(dtype) * (np.abs(exact) + error))


@pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=NAMES.get)
def test_rms_norm(dtype, rng):
    run = kernel("layer_norm", f"rms_norm_{NAMES[dtype]}", {"has_weight": True})
    for size in SIZES:
        x, weight = rng.normal(size=(2, 3, size)).astype(dtype)
        weight = weight[0].copy()
        out = np.empty_like(x)
        group = row_group(size)
        run(x, weight, weight, out, 1e-5, size, threads=3 * group, group_size=group)
        wide = x.astype(np.float64)
        square = np.mean(wide**2, axis=1, keepdims=True) + np.float64(np.float32(1e-5))
        exact = wide / np.sqrt(square) * weight.astype(np.float64)
        additions = ceildiv(size, group) + READS + TWO_SIMD_SUMS
        relative = (additions + 3) / 2 * 2.0**-24 + 6 * 2.0**-23
        assert_within(out, exact, np.abs(exact) * (relative + roundoff(dtype)) * (1 + 2.0**-7))
