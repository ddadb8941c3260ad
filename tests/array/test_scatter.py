"""Scatters: kernels for a few cores and for SIMT devices, against NumPy's `ufunc.at`."""

import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.ir import dtypes
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.primitives import lower
from metalloid.arrays.library import scatter
from metalloid.arrays.planning.plan import make_plan
from metalloid.arrays.planning.schedule import CallStep
from metalloid.runtime.devices import registry

FUNCTIONS = {"set": None, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
             "min": np.minimum, "max": np.maximum}  # fmt: skip
COMMON = [("set", mtl.float32), ("set", mtl.complex64), ("add", mtl.float32), ("add", mtl.int64),
          ("add", mtl.int8), ("add", mtl.bool_), ("max", mtl.float16), ("multiply", mtl.float32)]  # fmt: skip
CASES = [
    pytest.param(name, dtype, marks=() if (name, dtype) in COMMON else pytest.mark.slow)
    for name in FUNCTIONS
    for dtype in dtypes.ALL
    if not (dtype.kind == "c" and name in ("min", "max"))
    and not (dtype == mtl.bool_ and name == "subtract")
]


@pytest.fixture(params=["cpu", "own:0"])
def device(monkeypatch, request):
    folder = str(Path(__file__).parent.parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")
    return request.param


def expected(x, index, new, name):
    x = x.copy()
    if name == "set":
        x[index] = new
    else:
        FUNCTIONS[name].at(x, index, new)
    return x


def numbers(rng, shape, dtype):
    """Small integers: sums of floats of them are exact in every order."""
    return rng.integers(0, 3, shape).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
@pytest.mark.sample(3)
def test_functions_and_types(device, rng, name, dtype):
    x, new = numbers(rng, (7, 3), dtype), numbers(rng, (40, 3), dtype)
    index = rng.integers(-7, 7, 40)
    own, at = mtl.asarray(x, device=device), mtl.asarray(index, device=device)
    got = getattr(own.at[at], name)(mtl.asarray(new, device=device))
    np.testing.assert_array_equal(np.asarray(got), expected(x, index, new, name))
    np.testing.assert_array_equal(np.asarray(own), x)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((5, 40), ([3, 3, 0],)),  # a column per thread
        ((4, 3, 5), (slice(None), [0, 2, 2], 1)),
        ((4, 3, 5), (slice(1, 3), slice(None), [[0, 4], [4, 4]])),
        ((4, 3), ([1, 1, 3], [2, 2, 0])),
        ((4, 3), ([],)),
    ],
)
@pytest.mark.sample(2)
def test_shapes(device, rng, shape, index):
    x = numbers(rng, shape, np.float32)
    at = tuple(mtl.asarray(np.array(i, np.int64), device=device) if isinstance(i, list) else i
               for i in index)  # fmt: skip
    index = tuple(np.array(i, np.int64) if isinstance(i, list) else i for i in index)
    new = numbers(rng, x[index].shape, np.float32)
    own = mtl.asarray(x, device=device)
    for name, value in (("add", new), ("set", new), ("add", 2.0)):
        given = value if isinstance(value, float) else mtl.asarray(value, device=device)
        got = getattr(own.at[at], name)(given)
        np.testing.assert_array_equal(np.asarray(got), expected(x, index, value, name))


def test_sums_of_floats_in_order(device, rng):
    """The same bits as NumPy's: on the CPU always, elsewhere if asked for."""
    x, new = rng.standard_normal(3, np.float32), rng.standard_normal(500, np.float32)
    index = rng.integers(0, 3, 500)
    with mtl.config.scope(deterministic=True):
        got = mtl.asarray(x, device=device).at[mtl.asarray(index, device=device)].add(
            mtl.asarray(new, device=device))  # fmt: skip
        np.testing.assert_array_equal(np.asarray(got), expected(x, index, new, "add"))


def test_updates_in_a_row_share_memory(device):
    """Each continues in the buffer of the one before, unless that has other users."""
    x, i = mtl.zeros(5, device=device), mtl.asarray([1, 1, 2], device=device)
    first = x.at[i].add(1)
    second = first.at[i].multiply(3)
    third = second.at[i].max(7)
    lower([third._node])
    planner = make_plan(LinearizedGraph([third._node]))
    assert not any(isinstance(step, CallStep) for step in planner.steps)
    assert len([source for source in planner.sources if source.shape == (5,)]) == 1
    both = first + second
    np.testing.assert_array_equal(np.asarray(third), [0, 18, 7, 0, 0])
    np.testing.assert_array_equal(np.asarray(first), [0, 2, 1, 0, 0])
    np.testing.assert_array_equal(np.asarray(both), [0, 20, 4, 0, 0])
    np.testing.assert_array_equal(np.asarray(x), np.zeros(5))


def test_methods():
    """Where order matters or atomic operations are missing, indices are sorted."""
    types = mtl.float32, mtl.float64, mtl.int64, mtl.complex64, mtl.bfloat16
    keys = {(name, dtype) for name in ("add", "multiply", "maximum") for dtype in types}
    keys.remove(("maximum", mtl.complex64))
    is_sorted = {key for key in keys if scatter._method(key[1], key[0], True) == scatter.SORTED}
    assert is_sorted == {("add", mtl.float64), ("multiply", mtl.float64), ("multiply", mtl.int64),
                         ("multiply", mtl.complex64), ("maximum", mtl.float64),
                         ("maximum", mtl.int64)}  # fmt: skip
    with mtl.config.scope(deterministic=True):
        assert scatter._method(mtl.float32, "add", True) == scatter.SORTED
        assert scatter._method(mtl.int32, "add", True) == scatter.ATOMIC


def test_extremes_of_complex_numbers_are_refused():
    with pytest.raises(TypeError, match=r"\[maximum\] is not supported for complex64"):
        mtl.zeros(3, dtype=mtl.complex64).at[mtl.asarray([0])].max(1)


def test_weighted_counts_on_every_device(device, rng):
    x, weights = rng.integers(0, 50, 1000), rng.integers(0, 9, 1000).astype(np.float32)
    at = mtl.asarray(x, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.bincount(at)), np.bincount(x))
    got = mtl.bincount(at, weights=mtl.asarray(weights, device=device))
    np.testing.assert_array_equal(np.asarray(got), np.bincount(x, weights))


def test_indices_on_devices_are_checked_when_a_result_is_read(device):
    x, wrong = mtl.zeros(4, device=device), mtl.asarray([1, 5], device=device)
    with pytest.raises(IndexError, match="9 is out of range for axis 0 of extent 4"):
        x[np.array([0, 9])]  # values of the host: at once
    if device == "cpu":
        return
    taken = x[wrong]
    with pytest.raises(IndexError, match="5 is out of range for axis 0 of extent 4") as caught:
        np.asarray(taken)
    assert "test_scatter.py" in caught.value.__notes__[0]
    taken = x.at[wrong].add(1)
    mtl.async_eval(taken)
    with pytest.raises(IndexError, match="5 is out of range for axis 0 of extent 4"):
        np.asarray(taken)
    np.testing.assert_array_equal(np.asarray(x.at[wrong - 2].set(1)), [0, 0, 0, 1])


def test_repeated_updates_leave_what_is_held(device, rng):
    """Plans depend on the structure of the graph only, not on references to its nodes."""
    for k in range(8):
        values, index = rng.standard_normal(50, np.float32), rng.integers(0, 50, 20)
        x, i = mtl.asarray(values, device=device), mtl.asarray(index, device=device)
        first = x.at[i].set(k)
        second = first.at[i].add(1)
        held = first if k % 2 else None
        del first
        changed = values.copy()
        changed[index] = k
        after = changed.copy()
        np.add.at(after, index, 1)
        np.testing.assert_array_equal(np.asarray(second), after)
        if held is not None:
            np.testing.assert_array_equal(np.asarray(held), changed)
        np.testing.assert_array_equal(np.asarray(x), values)


def test_a_setting_chooses_among_known_plans(device, rng):
    x, new = rng.standard_normal(3, np.float32), rng.standard_normal(500, np.float32)
    index = rng.integers(0, 3, 500)
    for is_exact in (False, False, True, True, False, True):
        with mtl.config.scope(deterministic=is_exact):
            arrays = (mtl.asarray(a, device=device) for a in (x, index, new))
            base, at, added = arrays
            got = np.asarray(base.at[at].add(added))
        np.testing.assert_allclose(got, expected(x, index, new, "add"), rtol=1e-4, atol=1e-4)
        if is_exact:
            np.testing.assert_array_equal(got, expected(x, index, new, "add"))
