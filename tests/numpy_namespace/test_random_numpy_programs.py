"""Random NumPy programs of 5 to 40 lines. The oracle is NumPy.

All variables are evaluated together at the end, so that many lines fuse.
"""

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_texts import write_program

import metalloid.numpy as own


def run(program):
    """The values of all variables, computed by `metalloid.numpy`."""
    names = {"np": own}
    for line in program.lines:
        exec(line, names)
    results = [names[name] for name in program.values]
    own.eval(*(x for x in results if isinstance(x, own.ndarray)))
    return [numpy.asarray(x) for x in results]


def check(program):
    text = "\n".join(program.lines)
    try:
        results = run(program)
    except Exception as error:
        raise AssertionError(f"{text}\n{type(error).__name__}: {error}") from error
    # Errors are relative to the largest number that a program computes with.
    magnitude = 1.0
    is_single = False
    for line, x, y in zip(program.lines, results, program.values.values(), strict=True):
        where = f"{line}\nof\n{text}"
        assert (x.dtype, x.shape) == (y.dtype, y.shape), where
        if y.dtype.kind != "f":
            numpy.testing.assert_array_equal(x, y, err_msg=where)
            continue
        is_single |= y.dtype == numpy.float32
        magnitude = max(magnitude, float(numpy.abs(y).max(initial=0)))
        rtol = 2e-5 if is_single else 1e-12
        numpy.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * magnitude, err_msg=where)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_programs(seed):
    check(write_program(seed))
