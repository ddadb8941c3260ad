"""PyDotCompute's document: its examples, one after the other, and its kernels on larger arrays."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compat.pydotcompute.backends.metal import MetalBackend, get_elementwise_kernel

SEEDS = Path(__file__).parent / "seeds" / "pydotcompute"
ULP = 2.0**-23


def example(name, **names):
    return runpy.run_path(str(SEEDS / f"{name}.py"), init_globals=names)


def host(array):
    return np.asarray(array).astype(np.float64)


def test_overview():
    assert example("overview", np=np)["data"].tolist() == [1, 2, 3]


def test_basic(capsys):
    assert example("basic")["result"].tolist() == [5, 7, 9]
    assert capsys.readouterr().out == "[5. 7. 9.]\n"


def test_prebuilt():
    namespace = example("prebuilt")
    assert namespace["result"].tolist() == [5, 7, 9]
    assert namespace["roots"].tolist() == [1, 2, 3]
    a, b = host(namespace["A"]), host(namespace["B"])
    error = np.abs(host(namespace["C"]) - a @ b)
    assert (error <= 100 * ULP / 2 * (np.abs(a) @ np.abs(b))).all()


def test_gaussian(rng):
    namespace = example("gaussian")
    x = rng.uniform(-3, 3, 1_000_000).astype(np.float32)
    for given, result in (
        (namespace["input_data"], namespace["result"]),
        (x, namespace["backend"].copy_to_host(namespace["compiled"](x))),
    ):
        square = given.astype(np.float64) ** 2
        exact = np.exp(-square)
        # The square is rounded; its error comes out of exp as a relative one.
        assert (np.abs(result - exact) <= (square + 4) * ULP * exact).all()


def test_timing(capsys):
    namespace = example("timing")
    result = namespace["result"]
    assert result.success
    assert capsys.readouterr().out == f"Execution time: {result.execution_time_ms:.3f}ms\n"
    exact = np.hypot(host(namespace["a"]), host(namespace["b"]))
    assert (np.abs(host(result.output) - exact) <= 3 * ULP * exact).all()


def test_memory(capsys):
    namespace = example("memory", MetalBackend=MetalBackend, np=np)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("Buffers: 0", "Buffers after allocation: 10")
    assert namespace["backend"].get_memory_info()["buffer_count"] == 0
    assert namespace["backend"].get_memory_info()["cache_memory"] == 0
    assert all(array.shape == (1000,) for array in namespace["arrays"])


def test_unified_buffer(capsys):
    namespace = example("unified_buffer")
    exact = namespace["buffer"].host.astype(np.float64).sum()
    printed = float(capsys.readouterr().out.removeprefix("Sum: "))
    assert printed == float(namespace["result"])
    assert abs(printed - exact) <= 1000 * ULP * np.abs(namespace["buffer"].host).sum()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "sqrt", "exp", "log", "sin", "cos",
                                  "abs", "square", "negative"])  # fmt: skip
@pytest.mark.sample(3)
def test_elementwise_kernels(name, rng):
    """The kernels that the document lists, on a million numbers."""
    numpy_name = {"sub": "subtract", "mul": "multiply", "div": "divide"}.get(name, name)
    exact = getattr(np, numpy_name)
    given = rng.uniform(0.5, 3, (exact.nin, 1_000_000)).astype(np.float32)
    result = get_elementwise_kernel(name)(*map(mtl.asarray, given))
    expected = exact(*given.astype(np.float64))
    # sin and cos near their zeros, log near 1: within what they are of 1
    assert (np.abs(host(result) - expected) <= 4 * ULP * np.maximum(np.abs(expected), 1)).all()
