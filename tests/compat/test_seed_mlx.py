"""MLX's document: its two programs, and their functions on larger arrays."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from metalloid.compat import mlx as compat

SEEDS = Path(__file__).parent / "seeds" / "mlx"
HALF_ULP = 2.0**-11  # of a half that is rounded once


@pytest.fixture
def mx():
    module = pytest.importorskip("mlx.core", reason="the package mlx is not installed")
    yield module
    compat.unpatch()


def is_exp(result, x):
    """Whether halfs are the exponentials of others, computed in float and rounded."""
    exact = np.exp(np.array(x).astype(np.float64))
    return (np.abs(np.array(result) - exact) <= HALF_ULP * exact * 1.001).all()


@pytest.mark.parametrize("program", ["myexp.py", "myexp_strided.py"])
def test_programs(mx, program):
    names = runpy.run_path(str(SEEDS / program))
    a, b, exp_elementwise = (names[name] for name in ("a", "b", "exp_elementwise"))
    assert (type(b), b.dtype, b.shape) == (mx.array, mx.float16, a.shape)
    assert is_exp(b, a)
    a = mx.random.normal(shape=(1000, 1024)).astype(mx.float16)
    for view in (a, a[::2], a[:, ::3], a.T):
        assert is_exp(exp_elementwise(view), view)
