"""Steps of optimisers, a derivative, and a count of right predictions."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff
from scipy.special import expit

from ggml_tree.source import extents, run

_ADAMW = re.compile(r"kernel_opt_step_adamw_f32$")
_SGD = re.compile(r"kernel_opt_step_sgd_f32$")
_SILU_BACK = re.compile(r"kernel_silu_back_f32$")
_COUNT_EQUAL = re.compile(r"kernel_count_equal_i32$")

_U = roundoff(FLOAT)
_COUNT, _THREADS = 1000, 256
_GROUPS = (ceildiv(_COUNT, _THREADS),)


def _normal(rng):
    return rng.normal(size=_COUNT).astype(np.float32)


def check_adamw(source, library, name, rng):
    """AdamW (arXiv:1711.05101); the host gives the corrections of both moments."""
    x, g, mean = _normal(rng), _normal(rng), _normal(rng)
    square = rng.uniform(0.1, 1, _COUNT).astype(np.float32)
    parameters = np.array([1e-2, 0.9, 0.999, 1e-8, 0.1, 2.5, 3.5], np.float32)
    rate, beta1, beta2, eps, decay, scale1, scale2 = parameters.astype(np.float64)
    before = [a.astype(np.float64) for a in (x, g, mean, square)]
    run(
        library.function(name),
        (source.arguments("opt_step_adamw", np=_COUNT), x, g, mean, square, parameters),
        _GROUPS, (_THREADS,),
    )  # fmt: skip
    new_mean = before[2] * beta1 + before[1] * (1 - beta1)
    new_square = before[3] * beta2 + before[1] ** 2 * (1 - beta2)
    step = rate * new_mean * scale1 / (np.sqrt(new_square * scale2) + eps)
    exact = before[0] * (1 - rate * decay) - step
    # 1 - beta2 is a rounding of float32, 500 times larger relative to it.
    size_of_mean = np.abs(before[2]) + np.abs(before[1])
    assert_within(mean, new_mean, 4 * _U * size_of_mean)
    assert_within(square, new_square, 4 * _U * (before[3] + before[1] ** 2))
    assert_within(x, exact, 8 * _U * (np.abs(before[0]) + 40 * rate * size_of_mean))


def check_sgd(source, library, name, rng):
    """Stochastic gradient descent with weight decay."""
    x, g, parameters = _normal(rng), _normal(rng), np.array([0.3, 0.1], np.float32)
    rate, decay = parameters.astype(np.float64)
    first, second = x.astype(np.float64) * (1 - rate * decay), rate * g.astype(np.float64)
    arguments = source.arguments("opt_step_sgd", np=_COUNT)
    run(library.function(name), (arguments, x, g, parameters), _GROUPS, (_THREADS,))
    assert_within(x, first - second, 4 * _U * (np.abs(first) + np.abs(second)))


def check_silu_back(source, library, name, rng):
    dy, x, out = _normal(rng), _normal(rng) * np.float32(3), np.full(_COUNT, np.nan, np.float32)
    arguments = source.arguments("silu_back", ne=_COUNT)
    run(library.function(name), (arguments, dy, x, out), _GROUPS, (_THREADS,))
    wide, s = x.astype(np.float64), expit(x.astype(np.float64))
    exact = dy * s * (1 + wide * (1 - s))
    assert_within(out, exact, 24 * _U * np.abs(dy) * s * (1 + np.abs(wide)))


def check_count_equal(source, library, name, rng):
    for columns, simdgroups in ((5, 1), (300, 4)):
        x, y = rng.integers(0, 3, (2, 2, 3, 4, columns)).astype(np.int32)
        out = np.zeros(1, np.int32)
        sizes = extents(x, "0") | extents(y, "1")
        kernel = library.function(name, {"FC_count_equal_nsg": simdgroups})
        arguments = source.arguments("count_equal", **sizes)
        run(kernel, (arguments, x, y, out), (4, 3, 2), (32 * simdgroups,), 32 * 4)
        assert out[0] == np.count_nonzero(x == y)


FAMILIES = (
    ("step of AdamW", check_adamw, _ADAMW),
    ("step of gradient descent", check_sgd, _SGD),
    ("derivative of silu", check_silu_back, _SILU_BACK),
    ("equal elements", check_count_equal, _COUNT_EQUAL),
)
