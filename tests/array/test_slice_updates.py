"""Writes of slices that evaluation makes in place: values stay those of NumPy for all readers."""

import threading

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import known_evaluations
from metalloid.arrays.library.slice_updates import is_slice_update


def evaluated(shape, value=1.0):
    x = mtl.zeros(shape) + mtl.asarray(value)
    mtl.eval(x)
    return x


def expression(values):
    """Values that have not been computed."""
    return mtl.asarray(np.asarray(values, np.float32)) * 2


def test_a_growing_cache_is_written_in_place_by_one_plan():
    x, expected = evaluated((2, 40, 8)), np.ones((2, 40, 8), np.float32)
    memory = id(x._node.memory)  # a reference would make it a copy
    for k in range(40):
        x[:, k : k + 1] = expression(np.full((2, 1, 8), k))
        expected[:, k] = 2 * k
        assert is_slice_update(x._node)
        assert float(x.sum()) == expected.sum()
        if k == 1:
            plans = len(known_evaluations.plans)
    assert len(known_evaluations.plans) == plans
    mtl.eval(x)
    assert id(x._node.memory) == memory
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_many_writes_without_a_read():
    x = evaluated((50, 3))
    memory = id(x._node.memory)  # a reference would make it a copy
    for k in range(50):
        x[k] = expression([k, k + 1, k + 2])
    np.testing.assert_array_equal(np.asarray(x), 2 * np.arange(50)[:, None] + 2 * np.arange(3))
    assert id(x._node.memory) == memory


def test_readers_from_before_a_write_see_the_old_values():
    x = evaluated((4, 4))
    view, copy, pending, host = x[1:3], x.copy(), x[0] + 1, np.asarray(x)
    x[1] = expression([1, 2, 3, 4])
    between = x * 10
    x[0:2] = expression(np.zeros((2, 4)))
    x[3, 1:] = expression([7, 8, 9])
    np.testing.assert_array_equal(np.asarray(x)[:, 1], [0, 0, 1, 14])
    np.testing.assert_array_equal(np.asarray(between)[1], [20, 40, 60, 80])
    for old in (view, copy, host):
        assert (np.asarray(old) == 1).all()
    assert (np.asarray(pending) == 2).all()


def test_a_value_that_reads_the_array_it_is_written_to():
    x = mtl.arange(8, dtype=mtl.float32) + 0
    mtl.eval(x)
    x[1:] = x[:-1] * 2
    x[0:4] = x[4:8] + x[0:4]
    expected = np.arange(8, dtype=np.float32)
    expected[1:] = expected[:-1].copy() * 2
    expected[0:4] = expected[4:8] + expected[0:4]
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_other_updates_of_a_pending_write():
    x = evaluated((6,))
    x[1:3] = expression([1, 2])
    other = x
    result = x.at[mtl.asarray([0, 1])].add(expression([5, 5]))
    np.testing.assert_array_equal(np.asarray(result), [11, 12, 4, 1, 1, 1])
    np.testing.assert_array_equal(np.asarray(other), [1, 2, 4, 1, 1, 1])
    x = evaluated((6,))
    x[1:3] = expression([1, 2])
    x[mtl.asarray([5, 4])] = expression([8, 9])
    x[::2] = expression([0, 0, 0])
    x[3] = 7
    np.testing.assert_array_equal(np.asarray(x), [0, 2, 0, 7, 0, 16])


def test_dtypes_are_converted_and_wrong_shapes_raise():
    x = mtl.zeros((3, 2), dtype=mtl.int16) + 1
    mtl.eval(x)
    x[:2] = expression([[1.5, 2], [3, 4]])
    x[2:, :1] = expression([4])
    np.testing.assert_array_equal(np.asarray(x), [[3, 4], [6, 8], [8, 1]])
    with pytest.raises(ValueError, match="do not broadcast"):
        x[:2] = expression([1, 2, 3])


def test_derivatives_batches_and_programs_of_writes():
    def written(value):
        x = evaluated((4,))
        x[1:3] = value * 3
        x[0:1] = value[:1] * value[1:]
        return (x * x).sum()

    value = mtl.asarray([2.0, 5.0])
    gradient = mtl.grad(written)(value)
    np.testing.assert_allclose(np.asarray(gradient), [2 * 18 + 2 * 2 * 25, 2 * 45 + 2 * 5 * 4])
    stacked = mtl.vmap(written)(mtl.stack([value, value + 1]))
    expected = [1 + 9 * (a * a + b * b) + (a * b) ** 2 for a, b in ((2, 5), (3, 6))]
    np.testing.assert_allclose(np.asarray(stacked), expected)
    compiled = mtl.compile(written)
    assert float(compiled(value)) == float(compiled(value)) == expected[0]


def test_threads_write_to_arrays_that_they_got_from_one():
    shared, failures = evaluated((64, 4)), []

    def work(number):
        x = shared.copy()
        for k in range(64):
            x[k : k + 1] = expression(np.full((1, 4), number + k))
            if float(x[k].sum()) != 8 * (number + k):
                failures.append((number, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (np.asarray(shared) == 1).all()


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    arrays = [(evaluated((4, 3, 8)), np.ones((4, 3, 8), np.float32))]
    for _ in range(60):
        at = int(rng.integers(len(arrays)))
        x, expected = arrays[at]
        first = rng.integers(0, 3, 3)
        key = tuple(slice(int(a), int(a) + 1) for a in first)
        kind = rng.integers(8)
        if kind < 3:
            number = float(rng.integers(9))
            x[key] = expression(np.full((1, 1, 1), number))
            expected[key] = 2 * number
        elif kind == 3:
            x[key] = 5.0
            expected[key] = 5
        elif kind == 4:
            x[key] = x[::-1][key] + 1
            expected[key] = expected[::-1][key] + 1
        elif kind == 5 and len(arrays) < 6:
            other = (x.copy(), x * 1, x[:])[int(rng.integers(3))]
            arrays.append((other, expected.copy()))
        elif kind == 6:
            assert float(x[key].sum()) == expected[key].sum()
        else:
            mtl.eval(x)
        del x
    for x, expected in arrays:
        np.testing.assert_array_equal(np.asarray(x), expected)
