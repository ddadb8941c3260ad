"""MetalPy's document: its examples on the sizes it names, and all 51 kernels."""

from pathlib import Path

import numpy as np
import pytest
from metalpy_operations import OPERATIONS, gelu

import metalloid as mtl
from metalloid.compat.metalpy import MetalPy

SEEDS = Path(__file__).parent / "seeds" / "metalpy"
EPSILON = 2.0**-24


def close_to_product(result, a, b):
    """Within the rounding of a float sum, however long."""
    exact, size = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
    return (np.abs(np.reshape(result, exact.shape) - exact) <= len(b) * EPSILON * size).all()


@pytest.mark.parametrize("n", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_usage(n, rng, capsys):
    left, right = rng.random((2, n, n), np.float32)
    text = (SEEDS / "usage.py").read_text().replace("2000", str(n))
    for matrix in ("left", "right"):  # what the document's dots stand for
        text = text.replace("[...]", matrix, 1)
    names = {"left": left.reshape(-1).tolist(), "right": right.reshape(-1).tolist()}
    exec(text, names)
    assert capsys.readouterr().out.endswith("[6.0, 8.0, 10.0, 12.0]\n")
    assert names["result"].to_list() == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert (names["maximum"], names["total"]) == (4.0, 10.0)
    assert close_to_product(names["C"].to_array(), left, right)


def test_calls_of_the_architecture(rng):
    gpu = MetalPy()
    x, y = rng.standard_normal((2, 10_000)).astype(np.float32)
    M = N = K = 100
    names = {
        "gpu": gpu, "a": gpu.array(x.tolist()), "b": gpu.array(y.tolist()), "M": M, "N": N, "K": K,
    }  # fmt: skip
    names |= {"A": names["a"], "B": names["b"], "array": names["a"], "activations": names["b"]}
    add, matmul, argmax, activated = (
        eval(line, names) for line in (SEEDS / "calls.py").read_text().splitlines()
    )
    assert add.to_list() == (x + y).tolist()
    assert close_to_product(matmul.to_array(), x.reshape(M, K), y.reshape(K, N))
    assert argmax == (x.argmax(), x.max())
    np.testing.assert_allclose(
        activated.to_list(), gelu(y.astype(np.float64)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("threads", [1, 100, 1024])
def test_grid_stride_loops(threads):
    loop = (SEEDS / "grid_stride.metal").read_text().replace("// Process element i", "x[i] += i;")
    lib = mtl.library(f"""
    kernel void process(device uint *x, constant uint &N, uint grid_size [[threads_per_grid]],
                        uint global_id [[thread_position_in_grid]]) {{ {loop} }}""")
    x = np.zeros(100_003, np.uint32)
    lib.process(x, x.size, threads=threads)
    assert (x == np.arange(x.size)).all()


def test_the_operations_use_all_kernels():
    """Each of which `test_operations` compares with NumPy."""
    gpu = MetalPy()
    for name, (arrays, more, _) in OPERATIONS.items():
        few = (x[:300] if x.ndim == 1 else x.reshape(-1) for x in arrays)
        getattr(gpu, name)(*(gpu.array(x.tolist()) for x in few), **more)
    unused = set(gpu.library.functions) - set(gpu.kernel_cache)
    assert unused == {"gather_kernel"}  # whose indices are no floats
