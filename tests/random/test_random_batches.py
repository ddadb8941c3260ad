"""Several keys at once: the results of each alone, stacked."""

import numpy as np
import pytest

import metalloid as mtl

KEYS = mtl.random.split(mtl.random.key(5), (3, 2))
X = mtl.arange(60).reshape(3, 5, 4)
WEIGHTS = mtl.asarray([0.5, 1.0, 0.0, 2.0])
LOC = mtl.asarray([[0.0], [100.0]])

DRAWS = {
    "bits": lambda key: mtl.random.bits((2, 3), mtl.uint8, key),
    "no shape": lambda key: mtl.random.uniform(key=key),
    "empty": lambda key: mtl.random.uniform(shape=(0, 2), key=key),
    "uniform": lambda key: mtl.random.uniform(LOC, LOC + 1, (2, 3), key=key),
    "normal": lambda key: mtl.random.normal((4,), mtl.float64, key=key),
    "shape of loc": lambda key: mtl.random.normal(loc=LOC, key=key),
    "truncated": lambda key: mtl.random.truncated_normal(-1, LOC, (2, 3), key=key),
    "exponential": lambda key: mtl.random.exponential((2, 3), scale=LOC, key=key),
    "gumbel": lambda key: mtl.random.gumbel((2, 3), mtl.float16, key=key),
    "laplace": lambda key: mtl.random.laplace((2, 3), loc=LOC, key=key),
    "bernoulli": lambda key: mtl.random.bernoulli(0.3, (2, 3), key),
    "poisson": lambda key: mtl.random.poisson(LOC + 2, (2, 3), key=key),
    "randint": lambda key: mtl.random.randint(-5, 6, (2, 3), key=key),
    "randint of arrays": lambda key: mtl.random.randint(0, LOC.astype(int) + 5, (2, 3), key=key),
    "permutation": lambda key: mtl.random.permutation(7, key=key),
    "rows": lambda key: mtl.random.permutation(X, 1, key),
    "categorical": lambda key: mtl.random.categorical(mtl.log(WEIGHTS), shape=(2, 3), key=key),
    "choice": lambda key: mtl.random.choice(X, (2, 2), axis=1, key=key),
    "first": lambda key: mtl.random.choice(X, (2, 2), replace=False, axis=1, key=key),
    "weighted": lambda key: mtl.random.choice(4, (2, 2), p=WEIGHTS, key=key),
    "weighted first": lambda key: mtl.random.choice(X, 3, False, WEIGHTS, 2, key=key),
    "split": lambda key: mtl.random.split(key, (2, 3)),
    "fold_in": lambda key: mtl.random.fold_in(key, 9),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (i % 2)) for i, n in enumerate(DRAWS)]
)
@pytest.mark.sample(1)
def test_every_key_makes_what_it_makes_alone(name):
    draw = DRAWS[name]
    batched = np.asarray(draw(KEYS))
    alone = np.stack([[np.asarray(draw(KEYS[i, j])) for j in range(2)] for i in range(3)])
    np.testing.assert_array_equal(batched, alone)


def test_numbers_folded_in_broadcast_with_keys():
    keys = np.asarray(mtl.random.fold_in(KEYS, mtl.arange(2)))
    assert keys.shape == (3, 2, 2)
    np.testing.assert_array_equal(keys[2, 1], mtl.random.fold_in(KEYS[2, 1], 1))
    many = mtl.random.fold_in(mtl.random.key(5), mtl.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(many, KEYS)


def test_one_kernel_for_all_keys():
    mtl.eval(KEYS)
    assert "\n2. " not in mtl.explain(mtl.random.normal(10, key=KEYS))


def test_what_is_no_key():
    with pytest.raises(ValueError, match=r"must have shape \(2,\) or \(..., 2\), got \(2, 3\)"):
        mtl.random.normal(3, key=mtl.zeros((2, 3), dtype=mtl.uint32))
    with pytest.raises(ValueError, match=r"\[random.fold_in\]"):
        mtl.random.fold_in(KEYS, mtl.arange(5))
