"""Random numbers under transforms: keys have no derivative, and each gives its own numbers."""

import numpy as np
import pytest
from derivatives import check_derivatives

import metalloid as mtl

r = mtl.random
WEIGHTS = mtl.asarray([0.1, 0.2, 0.7])

OF_KEYS = {
    "uniform": lambda key: r.uniform(0, 2, 3, key=key),
    "truncated normal": lambda key: r.truncated_normal(-1, 1, 3, key=key),
    "randint": lambda key: r.randint(0, 10, 3, key=key),
    "poisson": lambda key: r.poisson(2.0, 3, key=key),
    "permutation": lambda key: r.permutation(5, key=key),
    "choice": lambda key: r.choice(10, 3, replace=False, key=key),
    "weights": lambda key: r.choice(3, (2, 2), p=WEIGHTS, key=key),
    "categorical": lambda key: r.categorical(WEIGHTS, num_samples=4, key=key),
    "split": lambda key: r.split(key, 3),
}


@pytest.mark.parametrize("name", OF_KEYS)
@pytest.mark.sample(2)
def test_vmap_over_keys(name):
    keys = r.split(r.key(3), 4)
    calls = np.stack([np.asarray(OF_KEYS[name](key)) for key in keys])
    np.testing.assert_array_equal(np.asarray(mtl.vmap(OF_KEYS[name])(keys)), calls)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_over_weights(axes):
    keys = r.split(r.key(3), 3)
    weights = mtl.asarray([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])

    def function(p, key):
        return r.choice(3, 4, p=p, key=key)

    p, key = (x if axis == 0 else x[0] for x, axis in zip((weights, keys), axes, strict=True))
    stacked = mtl.vmap(function, in_axes=axes)(p, key)
    calls = [
        function(p if axes[0] is None else p[k], key if axes[1] is None else key[k])
        for k in range(3)
    ]
    np.testing.assert_array_equal(np.asarray(stacked), np.stack([np.asarray(c) for c in calls]))


def test_weights_and_keys_of_nested_batches():
    keys, weights = r.split(r.key(3), 2), mtl.asarray([[0.1, 0.9], [0.6, 0.4], [1.0, 0.0]])

    def function(p, key):
        return r.choice(2, 5, p=p, key=key)

    table = mtl.vmap(mtl.vmap(function, in_axes=(0, None)), in_axes=(None, 0))(weights, keys)
    calls = [[np.asarray(function(p, key)) for p in weights] for key in keys]
    np.testing.assert_array_equal(np.asarray(table), np.array(calls))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: r.uniform(a, b, 3, "float64", key=r.key(0)),
        lambda a, b: r.truncated_normal(a, b, 3, "float64", key=r.key(0)),
        lambda a, b: r.normal(3, "float64", a, b, key=r.key(0)),
        lambda a, b: r.gumbel(3, "float64", a, b, key=r.key(0)),
    ],
    ids=["uniform", "truncated normal", "normal", "gumbel"],
)
@pytest.mark.sample(1)
def test_derivatives_by_parameters(function):
    check_derivatives(function, np.float64(0.5), np.float64(1.5), order=1)


def test_indices_have_no_derivative():
    gradient = mtl.grad(lambda p: r.choice(WEIGHTS, 4, p=p, key=r.key(0)).sum() + p.sum())(WEIGHTS)
    np.testing.assert_array_equal(np.asarray(gradient), [1, 1, 1])
