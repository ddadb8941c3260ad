"""metalloid.compat.metalcompute.metalize: traced functions against the same in NumPy."""

import numpy as np
import pytest

import metalloid.compat.metalcompute as mc
from metalloid.compat.metalcompute.metalize import metalize, metalize_wth_device


def test_the_simple_example():
    @metalize
    def add(a, b):
        return a + b

    count = 10_000_000
    a, b = np.arange(count), np.ones(count)
    c = add(a, b)
    assert c[-1] == 10_000_000
    assert (np.asarray(c) == np.arange(1, count + 1)).all()


def julia(x, y, steps=100):
    """The example's, which takes a thousand steps: 13,010 lines."""
    zi, zr, count = x, y, 0
    for _ in range(steps):
        zi2 = (zi * zi) - (zr * zr) + -1.2
        zr2 = (2 * zi * zr) + 0.05
        mag = (zi2 * zi2) + (zr2 * zr2)
        zi, zr = zi2, zr2
        count = count + ((mag < 10_000) * 1.0)
    return count


@np.errstate(all="ignore")
@pytest.mark.parametrize("steps", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_julia_set(steps):
    x, y = np.meshgrid(np.linspace(-2, 2, 512, dtype="f"), np.linspace(-2, 2, 256, dtype="f"))
    counts = np.asarray(metalize(lambda x, y: julia(x, y, steps))(x, y))
    assert counts.shape == (256, 512)
    # Fused or not, roundings decide only where the set's edge is near.
    assert (counts == julia(x, y, steps)).mean() > 0.98
    assert np.unique(counts).size > 20


OPERATIONS = {
    "a - 1": lambda a, b: a - 1,
    "1 - a": lambda a, b: 1 - a,
    "a / b": lambda a, b: a / b,
    "2 / a": lambda a, b: 2 / a,
    "3 + a * 4": lambda a, b: 3 + a * 4,
    "a > b": lambda a, b: (a > b) * 1.0,
    "1e20": lambda a, b: a * 0 + 1e20,
    "inf": lambda a, b: a * 0 + float("inf"),
}
FUNCTIONS = {"sin": 2.0**-11, "cos": 2.0**-11, "sqrt": 2.0**-22, "log": 2.0**-21, "log2": 2.0**-21}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name, rng):
    a, b = rng.uniform(0.5, 3, (2, 1000)).astype("f")
    result = metalize(OPERATIONS[name])(a, b)
    np.testing.assert_allclose(np.asarray(result), OPERATIONS[name](a, b), rtol=3 * 2.0**-23)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, rng):
    a = rng.uniform(0.5, 3, 1000).astype("f")
    result = metalize(lambda x: getattr(x, name))(a)
    error = np.abs(np.asarray(result) - getattr(np, name)(a.astype(np.float64)))
    assert error.max() <= FUNCTIONS[name] * 2  # fast arithmetic


def test_shapes_and_results():
    @metalize_wth_device(mc.Device())
    def both(a, b):
        return a + b, a - b

    total, difference = both([1, 2], (3, 5))
    assert (total.format, total.shape) == ("f", (2,))
    assert (total.tolist(), difference.tolist()) == ([4, 7], [-2, -3])
    a = np.arange(6.0).reshape(2, 3)
    total, _ = both(a, np.asfortranarray(a))
    assert total.shape == (2, 3)
    assert total.tolist() == (2 * a).tolist()
    assert both.__name__ == "both"


def test_errors():
    @metalize
    def add(a, b):
        return a + b

    for arguments, words in (
        (([1],), r"^Expected 2 arguments\. Received 1$"),
        (([1], [1, 2]), r"^Expected all args to have 1 items$"),
        ((np.ones((2, 3)), np.ones((3, 2))), r"^Expected all args to have shape \(2, 3\)$"),
    ):
        with pytest.raises(Exception, match=words) as caught:
            add(*arguments)
        assert type(caught.value) is Exception
    with pytest.raises(Exception, match=r"^Unknown operation 'exp'$"):
        metalize(lambda x: x.exp)
