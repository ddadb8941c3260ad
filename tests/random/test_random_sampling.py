"""Permutations, choices and categories."""

import itertools

import numpy as np
import pytest
from scipy import stats

import metalloid as mtl


def key(n=0):
    return mtl.random.fold_in(mtl.random.key(31), n)


def test_permutations_are_permutations():
    order = np.asarray(mtl.random.permutation(10000, key=key()))
    np.testing.assert_array_equal(np.sort(order), np.arange(10000))
    assert abs(stats.spearmanr(order, np.arange(10000)).statistic) < 5 / 100
    x = mtl.arange(24).reshape(2, 3, 4)
    for axis in (0, 2):
        order = np.asarray(mtl.random.permutation(x.shape[axis], key=key(axis)))
        taken = mtl.random.permutation(x, axis, key(axis))
        np.testing.assert_array_equal(taken, np.take(np.asarray(x), order, axis))
    assert mtl.random.permutation(0).shape == (0,)


def test_all_orders_have_the_same_probability():
    keys = mtl.random.split(key(), 2400)
    indices = {order: k for k, order in enumerate(itertools.permutations(range(4)))}
    counts = np.zeros(24)
    for k in np.asarray(keys):
        order = np.argsort(np.asarray(mtl.random.bits(4, mtl.uint64, mtl.asarray(k))))
        counts[indices[tuple(order)]] += 1
    assert stats.chisquare(counts).pvalue > 1e-3


def test_categories():
    weights = np.array([0.1, 0.0, 0.25, 0.65])
    with np.errstate(divide="ignore"):
        logits = mtl.asarray(np.log(weights).astype(np.float32))
    samples = np.asarray(mtl.random.categorical(logits, num_samples=2**16, key=key()))
    counts = np.bincount(samples, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], weights[[0, 2, 3]] * 2**16).pvalue > 1e-3


def test_shapes_of_categories():
    sure = mtl.asarray(np.where(np.eye(3, dtype=bool), 0, -np.inf).astype(np.float32))
    assert mtl.random.categorical(sure).tolist() == [0, 1, 2]
    assert mtl.random.categorical(sure, axis=0).tolist() == [0, 1, 2]
    assert mtl.random.categorical(sure, num_samples=2).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert mtl.random.categorical(sure, shape=(2, 3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(ValueError, match=r"logits of shape \(3,\) do not broadcast to \(1,\)"):
        mtl.random.categorical(sure, shape=1)
    with pytest.raises(ValueError, match="shape or num_samples"):
        mtl.random.categorical(sure, shape=3, num_samples=2)
    with pytest.raises(TypeError, match="expected floats along an axis, got int64"):
        mtl.random.categorical(mtl.asarray([1, 2]))


def test_choices():
    x = mtl.asarray([[10, 11, 12, 13], [20, 21, 22, 23]])
    chosen = np.asarray(mtl.random.choice(x, (5, 2), axis=1, key=key()))
    assert chosen.shape == (2, 5, 2)
    np.testing.assert_array_equal(chosen[1] - chosen[0], 10)
    assert sorted(mtl.random.choice(x, 4, replace=False, axis=1, key=key())[0].tolist()) == [
        10, 11, 12, 13]  # fmt: skip
    assert mtl.random.choice(7).shape == ()
    counts = np.bincount(np.asarray(mtl.random.choice(7, 2**16, key=key())))
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("replace", [True, False])
def test_choices_by_weight(replace):
    weights = np.array([4.0, 0.0, 1.0, 3.0])
    keys = mtl.random.split(key(2), 300) if not replace else [key(3)]
    size = 2**16 if replace else 1
    chosen = [
        np.asarray(mtl.random.choice(4, size, replace, mtl.asarray(weights), key=k)) for k in keys
    ]
    counts = np.bincount(np.concatenate(chosen), minlength=4)
    assert counts[1] == 0
    expected = weights / weights.sum() * counts.sum()
    assert stats.chisquare(counts[[0, 2, 3]], expected[[0, 2, 3]]).pvalue > 1e-3


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [1.0, np.nan]])
def test_weights_that_are_no_probabilities(weights):
    with pytest.raises(ValueError, match="are not probabilities"):
        np.asarray(mtl.random.choice(2, 3, p=mtl.asarray(weights)))


def test_too_few_elements():
    with pytest.raises(ValueError, match="3 elements are not enough for 4"):
        mtl.random.choice(3, 4, replace=False)
    with pytest.raises(ValueError, match="0 elements are not enough for 2"):
        mtl.random.choice(0, 2)
    with pytest.raises(ValueError, match=r"p has shape \(2,\), expected \(3,\)"):
        mtl.random.choice(3, 1, p=mtl.asarray([0.5, 0.5]))
    with pytest.raises(ValueError, match="elements along an axis"):
        mtl.random.permutation(mtl.asarray(1.5))
