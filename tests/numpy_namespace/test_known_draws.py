"""Random numbers of calls like earlier ones: the same as those of a generator whose calls are unknown."""

import threading

import numpy
import pytest

import metalloid.numpy as np
from metalloid.arrays.ir import native
from metalloid.numpy import known_draws

POOL = numpy.arange(30.0)
DRAWS = {
    "random": (50,), "uniform": (0.0, 2.0, 50), "normal": (1.0, 2.0, 50), "exponential": (1.0, 50),
    "integers": (0, 100, 50), "logistic": (0.0, 1.0, 50), "geometric": (0.3, 50),
    "poisson": (4.0, 50), "binomial": (100, 0.3, 50), "gamma": (2.5, 1.0, 50), "beta": (2.0, 3.0, 50),
    "wald": (1.0, 2.0, 50), "standard_t": (3.0, 50), "zipf": (2.5, 50), "dirichlet": ([1.0, 2.0], 5),
    "choice": (POOL, 50), "permutation": (POOL,), "permuted": (POOL,), "shuffle": (POOL,),
    "triangular": (0.0, 0.3, 1.0, 50),
}  # fmt: skip


def drawn(generator, name):
    args = [np.asarray(a) if isinstance(a, numpy.ndarray) else a for a in DRAWS[name]]
    result = getattr(generator, name)(*args)
    return numpy.asarray(args[0] if result is None else result)


def numbers(names):
    """Successive results of a generator; draws of no numbers use no key."""
    generator, results = np.random.default_rng(5), []
    for _ in range(4):
        for name in names:
            results.append(drawn(generator, name))
            assert generator.random(0).shape == generator.integers(0, 9, 0).shape == (0,)
    return results


def test_numbers_do_not_depend_on_what_is_known(monkeypatch):
    if native.library() is None:
        pytest.skip("native functions are not available")
    known, function = [], native.known_call

    def observed(*args):
        result = function(*args)
        known.append(result is not None)
        return result

    monkeypatch.setattr(native, "known_call", observed)
    of_known = numbers(DRAWS)
    assert sum(known) > 2 * len(DRAWS)
    monkeypatch.setattr(native, "known_call", lambda *args: None)
    for a, b in zip(of_known, numbers(DRAWS), strict=True):
        assert a.dtype == b.dtype
        numpy.testing.assert_array_equal(a, b)
    assert len({a.tobytes() for a in of_known}) == len(of_known)


def test_a_failed_draw_uses_no_key():
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="scale"):
            one.normal(0.0, -1.0, 5)
        numpy.testing.assert_array_equal(one.normal(0.0, 1.0, 5), other.normal(0.0, 1.0, 5))


def test_keys_of_threads_differ():
    generator, results = np.random.default_rng(2), []

    def draw():
        for k in range(40):
            results.append(generator.random(8 + k % 2))
            generator.random(0)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = {float(result[0]) for result in results}
    assert len(first) == len(results) == 160


def test_a_choice_below_an_array_without_axes_reads_it():
    generator = np.random.default_rng(3)
    for limit in (3, 3, 3, 1000):
        drawn_below = generator.choice(np.asarray(limit), 200)
        assert 0 <= int(drawn_below.min()) <= int(drawn_below.max()) < limit
    assert int(drawn_below.max()) > 2


def test_keys_that_were_taken_come_first():
    keys = np.random.default_rng(4)._base._keys
    (a, b), number = keys.take(2)
    sequence = known_draws._Taken([a, b], keys)
    assert [sequence.next() is a, sequence.next() is b] == [True, True]
    c = sequence.next()
    assert sequence.used == 3
    keys.give_back(number, 2)  # too late: `c` was taken since
    assert keys.taken == 3
    assert not (c == a).all()
