"""Random expressions of maps, movements, reductions, joins, gathers and products, against NumPy."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import evaluate
from metalloid.arrays.planning import grid_partition as pieces

_LEAVES = 3
_STEPS = 14


class Pair:
    """The same values here and in NumPy's float64."""

    def __init__(self, own, exact):
        self.own, self.exact = own, exact


def leaf(rng):
    shape = tuple(rng.integers(1, 6, rng.integers(1, 4)))
    x = rng.uniform(-2, 2, shape).astype(np.float32)
    if rng.random() < 0.3:  # strided memory
        wide = np.repeat(x, 2, axis=-1)
        return Pair(mtl.asarray(wide)[..., ::2], x.astype(np.float64))
    return Pair(mtl.asarray(x), x.astype(np.float64))


def mapped(rng, a, b):
    unary = [
        lambda xp, x: xp.sin(x), lambda xp, x: xp.tanh(x) * 2, lambda xp, x: -x + 0.5,
        lambda xp, x: xp.exp(-abs(x)), lambda xp, x: xp.where(x > 0, x, x * 0.25),
        lambda xp, x: x * x * 0.5,
    ]  # fmt: skip
    binary = [
        lambda x, y: x + y, lambda x, y: x * y * 0.5, lambda x, y: x - 0.5 * y,
        lambda x, y: x / (1 + y * y),
    ]  # fmt: skip
    try:
        np.broadcast_shapes(a.own.shape, b.own.shape)
    except ValueError:
        b = None
    if (
        b is None
        or rng.random() < 0.5
        or np.prod(np.broadcast_shapes(a.own.shape, b.own.shape)) > 900
    ):
        function = unary[rng.integers(len(unary))]
        return Pair(function(mtl, a.own), function(np, a.exact))
    function = binary[rng.integers(len(binary))]
    return Pair(function(a.own, b.own), function(a.exact, b.exact))


def moved(rng, a):
    rank = a.own.ndim
    kind = rng.integers(5)
    if kind == 0:
        axes = tuple(int(k) for k in rng.permutation(rank))
        return Pair(mtl.permute_dims(a.own, axes), a.exact.transpose(axes))
    if kind == 1 and rank:
        step = int(rng.choice([1, 2, -1]))
        key = (slice(None),) * int(rng.integers(rank)) + (slice(None, None, step),)
        return Pair(a.own[key], a.exact[key])
    if kind == 2:
        return Pair(a.own.reshape(-1), a.exact.reshape(-1))
    if kind == 3 and rank < 4:
        return Pair(mtl.expand_dims(a.own, axis=0), a.exact[None])
    if a.own.size <= 100 and rank < 4:
        shape = (3, *a.own.shape)
        return Pair(mtl.broadcast_to(a.own, shape), np.broadcast_to(a.exact, shape))
    return a


def reduced(rng, a):
    if not a.own.ndim:
        return a
    name = str(rng.choice(["sum", "max", "mean"]))
    axis = int(rng.integers(a.own.ndim))
    keepdims = bool(rng.random() < 0.6)
    own = getattr(mtl, name)(a.own, axis=axis, keepdims=keepdims)
    return Pair(own, getattr(np, name)(a.exact, axis=axis, keepdims=keepdims))


def joined(rng, a):
    if not a.own.ndim or a.own.size > 300:
        return a
    axis = int(rng.integers(a.own.ndim))
    if rng.random() < 0.5:
        own = mtl.concat([a.own, a.own * 0.5], axis=axis)
        return Pair(own, np.concatenate([a.exact, a.exact * 0.5], axis))
    index = rng.integers(-a.own.shape[axis], a.own.shape[axis], 4)
    own = mtl.take(a.own, mtl.asarray(index), axis=axis)
    return Pair(own, np.take(a.exact, index, axis))


def multiplied(rng, a, b):
    """By another one, or by itself turned."""
    if a.own.ndim < 2 or a.own.size > 400:
        return a
    if b.own.ndim < 2 or b.own.shape[-2] != a.own.shape[-1] or rng.random() < 0.5:
        b = Pair(a.own.mT, np.swapaxes(a.exact, -1, -2))
    try:
        np.broadcast_shapes(a.own.shape[:-2], b.own.shape[:-2])
    except ValueError:
        return a
    backend = str(rng.choice(["auto", "registers", "simdgroups", "host", "sums"]))
    with mtl.config.scope(products=backend):
        own = a.own @ b.own
    return Pair(own * 0.2, a.exact @ b.exact * 0.2)


def check(seed, products=0.0):
    rng = np.random.default_rng(seed)
    pool = [leaf(rng) for _ in range(_LEAVES)]
    for _ in range(_STEPS):
        a, b = (pool[k] for k in rng.integers(len(pool), size=2))
        kind = rng.random()
        if products and rng.random() < products:
            pair = multiplied(rng, a, b)
        elif kind < 0.5:
            pair = mapped(rng, a, b)
        elif kind < 0.75:
            pair = moved(rng, a)
        elif kind < 0.9:
            pair = reduced(rng, a)
        else:
            pair = joined(rng, a)
        pool.append(pair)
    chosen = [pool[k] for k in rng.integers(_LEAVES, len(pool), 3)]
    if rng.random() < 0.5:
        mtl.eval(*(pair.own for pair in chosen))
    for pair in [*chosen, pool[-1]]:
        got = np.asarray(pair.own)
        assert got.shape == pair.exact.shape
        np.testing.assert_allclose(got, pair.exact, rtol=2e-4, atol=2e-5, err_msg=f"{seed=}")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sample(2)
def test_it_agrees_with_numpy(seed):
    check(seed)


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_products_in_it(seed):
    check(seed, products=0.25)


@pytest.fixture
def small_grids(monkeypatch):
    monkeypatch.setattr(pieces, "MAX_GRID_POINTS", 32)
    evaluate._plans.clear()
    yield
    evaluate._plans.clear()


@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_in_pieces(seed, small_grids):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(700, 900))
def test_many_agree_in_pieces(seed, small_grids):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_agree_with_numpy(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500, 700))
def test_many_agree_with_products_in_them(seed):
    check(seed, products=0.25)
