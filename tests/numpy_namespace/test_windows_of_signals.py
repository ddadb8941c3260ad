"""Windows of all lengths have NumPy's values."""

import numpy as onp
import pytest

import metalloid.numpy as np

NAMES = [
    ("bartlett",),
    ("blackman",),
    ("hamming",),
    ("hanning",),
    ("kaiser", 14.0),
    ("kaiser", 0.0),
]


@pytest.mark.parametrize("call", NAMES, ids=str)
def test_values(call):
    name, *parameters = call
    for length in (-3, 0, 1, 2, 3, 64, 1001, 2**14 + 1):
        expected = getattr(onp, name)(length, *parameters)
        result = onp.asarray(getattr(np, name)(length, *parameters))
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        onp.testing.assert_allclose(result, expected, rtol=0, atol=4e-15)
