"""Defects that the public suite array-api-tests finds at many examples, as tests of our own."""

import numpy as np
import pytest

import metalloid as mtl


@pytest.mark.parametrize("dtype", [None, mtl.uint64])
def test_integers_of_which_some_need_all_64_bits(dtype):
    values = [0, 2**63 + 1, 2**64 - 1]
    x = mtl.asarray([values, values], dtype=dtype)
    assert x.dtype == mtl.uint64
    assert x.numpy().tolist() == [values, values]
    with pytest.raises(OverflowError, match="does not fit any integer type"):
        mtl.asarray([-1, 2**63])
    assert mtl.asarray([-1, 2**63], dtype=mtl.float32).numpy().tolist() == [-1.0, 2.0**63]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_expressions_of_an_empty_product(shape, dtype):
    """Nothing computes the product, which a kernel or a function reads all the same."""
    x, y = mtl.ones(shape, dtype=dtype), mtl.ones((shape[-1], 0), dtype=dtype)
    mtl.eval(x, y)
    assert bool(mtl.all(x @ y == x @ y))
    assert int((x @ y).sum()) == 0
    assert (x @ y).sum(axis=-1).tolist() == np.zeros(shape[:-1]).tolist()
    assert mtl.sort(x @ y + 1).shape == (*shape[:-1], 0)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 0)])
def test_an_empty_mask_fits_any_extent(shape):
    x, mask = mtl.ones((3, 4)), mtl.zeros(shape, dtype=mtl.bool)
    assert x[mask].shape == (0, *x.shape[len(shape) :])
    x[mask] = 5
    np.testing.assert_array_equal(x.numpy(), np.ones((3, 4)))
