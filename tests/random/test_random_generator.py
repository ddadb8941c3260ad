"""The generator that NumPy's users know."""

import numpy as np
import pytest

import metalloid as mtl

CALLS = {
    "random": lambda rng: rng.random((3, 4)),
    "uniform": lambda rng: rng.uniform(1, 2, 5),
    "standard_normal": lambda rng: rng.standard_normal(5),
    "normal": lambda rng: rng.normal(2, 3, (2, 2)),
    "standard_exponential": lambda rng: rng.standard_exponential((2, 3)),
    "poisson": lambda rng: rng.poisson([2.0, 30.0], (9, 2)),
    "permuted": lambda rng: rng.permuted(np.arange(9)),
    "permuted rows": lambda rng: rng.permuted(np.arange(18).reshape(2, 9), axis=1),
    "choice in any order": lambda rng: rng.choice(9, 4, replace=False, shuffle=False),
    "exponential": lambda rng: rng.exponential(2, 5),
    "gumbel": lambda rng: rng.gumbel(size=5),
    "laplace": lambda rng: rng.laplace(size=5),
    "integers": lambda rng: rng.integers(3, 9, 5),
    "choice": lambda rng: rng.choice([5.0, 6.0, 7.0], 5),
    "permutation": lambda rng: rng.permutation(9),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sample(2)
def test_seeds_decide(name):
    """Equal seeds give equal numbers, the next call others; NumPy's generator is called alike."""
    call = CALLS[name]
    one, two = mtl.random.default_rng(4), mtl.random.default_rng(4)
    first, second = call(one), call(one)
    assert call(two).tolist() == first.tolist()
    assert first.tolist() != second.tolist()
    of_numpy = call(np.random.default_rng(4))
    assert of_numpy.shape == first.shape
    assert of_numpy.dtype.kind == first.dtype.kind


def test_without_a_seed():
    streams = [mtl.random.default_rng().random(4).tolist() for _ in range(2)]
    assert streams[0] != streams[1]


def test_integers_up_to():
    rng = mtl.random.default_rng(0)
    assert set(rng.integers(3, size=200).tolist()) == {0, 1, 2}
    assert set(rng.integers(1, 3, 200, endpoint=True).tolist()) == {1, 2, 3}


def test_bytes():
    rng = mtl.random.default_rng(3)
    first = rng.bytes(1000)
    assert isinstance(first, bytes)
    assert len(first) == 1000
    assert len(set(first)) > 240
    assert rng.bytes(1000) != first


def test_permuted():
    rng, x = mtl.random.default_rng(3), np.arange(60).reshape(3, 20)
    for axis in (0, 1):
        got = rng.permuted(mtl.asarray(x), axis=axis)
        np.testing.assert_array_equal(np.sort(got, axis=axis), x)
    rows = np.asarray(got) % 20
    assert len({tuple(row) for row in rows}) == 3  # each in an order of its own
    got = rng.permuted(x)
    assert got.shape == x.shape
    assert sorted(got.reshape(-1).tolist()) == list(range(60))


def test_a_generator_is_one_already():
    rng = mtl.random.default_rng(3)
    assert mtl.random.default_rng(rng) is rng


def test_shuffle():
    rng = mtl.random.default_rng(1)
    x = mtl.arange(50)
    same = x
    rng.shuffle(x)
    assert same is x
    assert x.tolist() != list(range(50))
    assert sorted(x.tolist()) == list(range(50))
    rows = np.arange(40).reshape(20, 2)
    rng.shuffle(rows)
    np.testing.assert_array_equal(rows[:, 1] - rows[:, 0], 1)
    assert sorted(rows[:, 0]) == list(range(0, 40, 2))


def test_spawn():
    rng = mtl.random.default_rng(1)
    streams = [child.random(4).tolist() for child in (*rng.spawn(3), rng)]
    assert len({tuple(s) for s in streams}) == 4
