"""Matrix products in wider types, as oracles for those of arrays."""

import ml_dtypes
import numpy as np

RNG = np.random.default_rng(5)
#: Rounding of a type, half the distance of 1 and the next number.
UNITS = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}


def random(shape, dtype):
    dtype = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    if dtype.kind in "iu":
        low = -50 if dtype.kind == "i" else 0
        return RNG.integers(low, 50, shape).astype(dtype)
    values = RNG.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(dtype)


def check(result, a, b, additions=None):
    """Integers are exact; others within the bound of any order of additions, or of so many."""
    dtype = result.dtype
    got = np.asarray(result)
    assert dtype == a.dtype
    if dtype.kind in "iu":
        want = np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(dtype)
        assert got.shape == want.shape
        assert (got == want).all()
        return
    wide = np.complex128 if dtype.kind == "c" else np.longdouble
    a, b = a.astype(wide), b.astype(wide)
    want = np.matmul(a, b)
    assert got.shape == want.shape
    own = UNITS[{"complex64": "float32", "complex128": "float64"}.get(str(dtype), str(dtype))]
    added = min(own, 2**-24)
    terms = (additions or a.shape[-1]) + (4 if dtype.kind == "c" else 1)
    bound = terms * added * np.matmul(abs(a), abs(b)) + own * abs(want) + 2**-24 * (own > 2**-24)
    assert (abs(got.astype(wide) - want) <= bound).all()
