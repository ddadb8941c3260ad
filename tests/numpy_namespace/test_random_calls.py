"""Random calls of functions along axes and of elementwise functions. The oracle is NumPy.

Quotients of infinities, rounded down, are those of the array API: `floor_divide` is not called.
"""

import warnings

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import metalloid.numpy as own

pytestmark = pytest.mark.slow

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64")
#: Functions of an array and an axis, or None.
ALONG = (
    "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "ptp",
    "median", "nansum", "nanmax", "nanmean", "nanstd", "nanmedian", "cumsum", "cumprod", "sort",
    "argsort", "flip", "count_nonzero", "nancumsum", "squeeze", "concatenate",
)  # fmt: skip
#: Functions of an array and one axis.
ALONG_ONE = ("diff", "trapezoid", "unwrap", "argpartition_of_all", "gradient", "repeat_twice")
BINARY = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "arctan2",
    "hypot", "equal", "less", "logical_and", "logical_or", "copysign", "heaviside", "fmod",
    "remainder", "isclose", "dot_of_flat", "outer", "append", "union1d", "setxor1d",
)  # fmt: skip
UNARY = ("sqrt", "exp", "sin", "abs", "sign", "floor", "rint", "square", "cbrt", "isnan", "nan_to_num",
         "logical_not", "degrees", "ravel", "unique", "nonzero", "negative", "round")  # fmt: skip
SPECIAL = {
    "argpartition_of_all": lambda np, x, axis: np.argpartition(x, 0, axis).shape,
    "repeat_twice": lambda np, x, axis: np.repeat(x, 2, axis),
    "dot_of_flat": lambda np, x, y: np.inner(x.ravel()[:2], y.ravel()[:2]),
    "gradient": lambda np, x, axis: np.gradient(x, axis=axis),
    "trapezoid": lambda np, x, axis: np.trapezoid(x, axis=axis),
    "diff": lambda np, x, axis: np.diff(x, axis=axis),
    "unwrap": lambda np, x, axis: np.unwrap(x, axis=axis),
    "concatenate": lambda np, x, axis: np.concatenate([x, x], axis),
}
RUN = settings(max_examples=1, deadline=None, database=None,
               suppress_health_check=list(HealthCheck))  # fmt: skip


@st.composite
def operands(draw, extents=(0, 4), dims=(1, 3), dtypes=DTYPES):
    dtype = numpy.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(arrays.array_shapes(min_dims=dims[0], max_dims=dims[1], min_side=extents[0],
                                     max_side=extents[1]))  # fmt: skip
    if dtype.kind == "f":
        numbers = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 1.0, 3.25, numpy.nan, numpy.inf])
        return draw(arrays.arrays(dtype, shape, elements=numbers))
    low = 0 if dtype.kind in "bu" else -5
    return draw(arrays.arrays(dtype, shape, elements=st.integers(low, 1 if dtype.kind == "b" else 7)
                              .map(dtype.type)))  # fmt: skip


def call(np, name, *args):
    if name in SPECIAL:
        return SPECIAL[name](np, *args)
    return getattr(np, name)(*args)


def check(name, *args):
    """Compare a call; where NumPy raises an error, an error of the same kind is raised."""
    given_ = [own.array(a) if isinstance(a, numpy.ndarray) else a for a in args]
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = call(numpy, name, *args)
        except (ValueError, TypeError, IndexError):
            with pytest.raises((ValueError, TypeError, IndexError)):
                numpy.asarray(call(own, name, *given_))
            return
        result = call(own, name, *given_)
    results, references = (v if isinstance(v, tuple) else (v,) for v in (result, expected))
    assert len(results) == len(references)
    for x, y in zip(results, references, strict=True):
        y = numpy.asarray(y)
        x = numpy.asarray(x)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        rtol = {8: 1e-11, 4: 1e-5, 2: 4e-3}.get(y.dtype.itemsize, 0)
        numpy.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", [*ALONG, *ALONG_ONE])
def test_functions_along_axes(name):
    @settings(RUN, max_examples=6)
    @given(st.data())
    def run(data):
        x = data.draw(operands(dtypes=DTYPES[name in ALONG_ONE :]))
        axes = [*range(-x.ndim, x.ndim)] + [None] * (name in ALONG)
        check(name, x, data.draw(st.sampled_from(axes)))

    run()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    @settings(RUN, max_examples=6)
    @given(operands(dims=(0, 2)))
    def run(x):
        check(name, x)

    run()


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    @settings(RUN, max_examples=8)
    @given(operands(dims=(1, 1), extents=(2, 2)), operands(dims=(1, 2), extents=(2, 2)))
    def run(x, y):
        check(name, x, y)

    run()
