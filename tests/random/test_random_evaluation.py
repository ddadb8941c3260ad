"""A number depends on its key and its index, and on nothing else: not on how it is computed."""

import os
import subprocess
import sys

import numpy as np
import pytest

import metalloid as mtl

KEY = mtl.random.key(99)
SHAPE = (6, 50, 7)

DRAWS = {
    "bits": lambda: mtl.random.bits(SHAPE, key=KEY),
    "uniform": lambda: mtl.random.uniform(-1, 3, SHAPE, key=KEY),
    "normal": lambda: mtl.random.normal(SHAPE, key=KEY),
    "normal64": lambda: mtl.random.normal(SHAPE, mtl.float64, key=KEY),
    "truncated": lambda: mtl.random.truncated_normal(-1, 2, SHAPE, key=KEY),
    "exponential": lambda: mtl.random.exponential(SHAPE, key=KEY),
    "gumbel": lambda: mtl.random.gumbel(SHAPE, key=KEY),
    "laplace": lambda: mtl.random.laplace(SHAPE, key=KEY),
    "randint": lambda: mtl.random.randint(0, 1000, SHAPE, key=KEY),
    "poisson": lambda: mtl.random.poisson(mtl.asarray([0, 1, 5, 9, 10, 50, 1e6]), SHAPE, key=KEY),
    "bernoulli": lambda: mtl.random.bernoulli(0.3, SHAPE, KEY),
}

#: Words, a function of them, one of two words, and a loop.
FAST = ("bits", "normal", "randint", "poisson")


@pytest.fixture(scope="module")
def wholes():
    return {name: np.asarray(draw()) for name, draw in DRAWS.items()}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in FAST)) for n in DRAWS]
)
@pytest.mark.sample(1)
def test_parts_and_orders(name, wholes):
    """Sliced, turned, gathered and reversed before they are computed, each a kernel of its own."""
    array, draw = wholes[name], DRAWS[name]
    np.testing.assert_array_equal(draw()[2:5, ::3, -1], array[2:5, ::3, -1])
    np.testing.assert_array_equal(draw().T, array.T)
    np.testing.assert_array_equal(mtl.flip(draw()), array[::-1, ::-1, ::-1])
    np.testing.assert_array_equal(draw().reshape(-1), array.reshape(-1))
    np.testing.assert_array_equal(draw()[mtl.asarray([4, 0])], array[[4, 0]])


def test_fused_into_what_uses_them(wholes):
    x = mtl.asarray(np.linspace(0, 1, 350, dtype=np.float32).reshape(50, 7))
    sum_of = np.asarray((DRAWS["normal"]() * x).max(axis=0))
    np.testing.assert_array_equal(sum_of, (wholes["normal"] * np.asarray(x)).max(axis=0))
    assert bool((DRAWS["uniform"]() == DRAWS["uniform"]()).all())


def test_one_kernel_and_nothing_materialized():
    """The sum of many random numbers takes no memory for them."""
    total = (mtl.random.normal(2**20, key=KEY) * 2).sum()
    assert "[1048576]" not in mtl.explain(total)
    assert "numpy::random_bits<uint>(" in total.msl()
    assert "numpy::erfinv" in total.msl()


def test_new_keys_are_computed_before_they_are_used():
    """In a kernel of two words, not again for every number."""
    report = mtl.explain(mtl.random.normal(1000, key=mtl.random.split(KEY)[1]))
    first, second = report.split("\n2. ")
    assert "numpy::key_word(" in first
    assert "numpy::key_word(" not in second
    assert "\n3. " not in second


def test_the_other_engine_has_the_same(tmp_path, wholes):
    """Loops over threads, one after the other, and vector code: bit for bit."""
    path = tmp_path / "numbers.npz"
    code = (
        "import sys, numpy as np; from tests.random.test_random_evaluation import DRAWS; "
        f"np.savez({str(path)!r}, **{{n: np.asarray(d()) for n, d in DRAWS.items()}})"
    )
    engine = "reference" if mtl.config.cpu_engine == "simd" else "simd"
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    environment = {**os.environ, "METALLOID_CPU_ENGINE": engine}
    subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, check=True)
    arrays = np.load(path)
    for name, array in wholes.items():
        np.testing.assert_array_equal(arrays[name], array, name)
