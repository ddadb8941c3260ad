"""Random calls of every function of NumPy, with random arguments and types. The oracle is NumPy."""

import types
import warnings

import numpy
import pytest
from call_texts import OTHERS, SIGNATURES, Call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import metalloid.numpy as own

#: Bounds of errors relative to the largest number, by bytes of the real type.
BOUNDS = {8: 1e-11, 4: 2e-5, 2: 4e-3}
REFUSALS = (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError)


def flat(value):
    return [y for x in value for y in flat(x)] if isinstance(value, tuple | list) else [value]


def evaluated(np, call):
    """The results of a call; arrays as those of NumPy."""
    names = {"np": np, **{name: np.array(value) for name, value in call.arrays.items()}}
    results = flat(eval(call.text, names))
    is_array = [isinstance(x, own.ndarray | numpy.ndarray | numpy.generic) for x in results]
    return [
        numpy.asarray(x) if is_one else x for x, is_one in zip(results, is_array, strict=True)
    ]  # fmt: skip


def check(call):
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = evaluated(numpy, call)
        except REFUSALS:
            with pytest.raises(REFUSALS):
                evaluated(own, call)
            return
        results = evaluated(own, call)
    assert len(results) == len(expected)
    for x, y in zip(results, expected, strict=True):
        if "unique_values" in call.text:  # whose order NumPy leaves open
            x, y = numpy.sort(x), numpy.sort(y)
        if not isinstance(y, numpy.ndarray):
            assert type(x) is type(y)
            assert x == y
            continue
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if y.dtype.kind in "fc":
            bound = BOUNDS[numpy.real(y).dtype.itemsize]
            magnitude = numpy.abs(y[numpy.isfinite(y)]).max(initial=1e-3)
            numpy.testing.assert_allclose(x, y, rtol=bound, atol=bound * magnitude)
        else:
            numpy.testing.assert_array_equal(x, y)


def described(call):
    return "\n".join([*(f"{k} = np.{v!r}" for k, v in call.arrays.items()), call.text])


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNATURES)
def test_every_function(name):
    @settings(
        max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.integers(0, 2**32))
    def run(seed):
        call = Call(name, seed)
        try:
            check(call)
        except Exception as error:
            raise AssertionError(f"{described(call)}\n{error}") from error

    run()


@pytest.mark.parametrize("name", ["sum", "where", "take", "linalg.norm"])
def test_some_functions(name):
    check(Call(name, 1))


def test_no_function_is_left_out():
    others = {name for names in OTHERS.values() for name in names.split()}
    for module in ("", "linalg.", "fft."):
        theirs = getattr(numpy, module.rstrip("."), numpy)
        for name in dir(theirs):
            value = getattr(theirs, name)
            if callable(value) and not isinstance(value, type | types.ModuleType):
                is_ours = hasattr(getattr(own, module.rstrip("."), own), name)
                is_listed = name.startswith("_") or f"{module}{name}" in SIGNATURES
                assert is_listed or name in others or not is_ours, f"{module}{name}"
