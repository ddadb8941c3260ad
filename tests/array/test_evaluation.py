"""Evaluating: memory that is given back, plans that serve again, failures that leave no trace."""

import gc
import os
import threading

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import compilation
from metalloid.arrays.ir.memory import Memory, pool_of


@pytest.fixture
def pool():
    gc.collect()
    return pool_of(mtl.zeros(1).device)


def test_arrays_of_other_shapes_find_the_kernel_compiled(monkeypatch):
    compiled = []
    original = compilation.generated_library

    def counted(text, *rest):
        compiled.append(text)
        return original(text, *rest)

    compilation._compiled.cache_clear()
    monkeypatch.setattr(compilation, "generated_library", counted)
    for n in (64, 100, 700):
        x = mtl.asarray(np.ones(n, np.float32))
        for factor in (2.0, 3.0):
            mtl.eval(mtl.tanh(x * factor) - 1.5)
    assert len(compiled) == 1


@pytest.mark.needs("the CPU")  # others compile one kernel after the other
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor")
def test_kernels_of_one_evaluation_are_compiled_at_the_same_time(monkeypatch):
    both, original = threading.Barrier(2), compilation.generated_library

    def meeting(*args):
        both.wait(60)
        return original(*args)

    x = mtl.asarray(np.ones((8, 65), np.float32))
    mtl.eval(x)
    compilation._compiled.cache_clear()
    monkeypatch.setattr(compilation, "_requested", {})
    monkeypatch.setattr(compilation, "generated_library", meeting)
    mtl.eval(x.sum(0), mtl.tanh(x))


def test_nothing_leaks(pool):
    x = mtl.asarray(np.ones(100, np.float32))
    before = pool.live_buffers
    for _ in range(2000):
        mtl.eval((x * 2 + 1).sum())
    assert pool.live_buffers <= before


@pytest.mark.slow
def test_nothing_leaks_over_many_evaluations(pool):
    x = mtl.asarray(np.ones(100, np.float32))
    before = pool.live_buffers
    for k in range(100_000):
        y = (x * float(k) + 1).reshape(10, 10)
        mtl.eval(y.sum(axis=1), y[k % 10])
    del y
    gc.collect()
    assert pool.live_buffers <= before


@pytest.mark.parametrize("n", [2**20, pytest.param(2**27, marks=pytest.mark.slow)])
def test_a_fused_chain_allocates_only_its_output(pool, monkeypatch, n):
    x = mtl.asarray(np.ones(n, np.float32))
    taken = []
    original = type(pool).acquire
    monkeypatch.setattr(
        type(pool), "acquire", lambda self, size: (taken.append(size), original(self, size))[1]
    )
    y = mtl.exp(-x * x) * mtl.sin(x) + mtl.sqrt(x) / (1 + x * x)
    mtl.eval(y)
    assert taken == [4 * n]


@pytest.mark.needs("the CPU")  # a batch keeps what its launches use until it has ended
def test_memory_that_only_the_graph_has_is_released_during_the_evaluation(pool):
    n = 2**16
    x = mtl.asarray(np.ones((n, 1), np.float32))
    mtl.eval(mtl.cumulative_sum(x, axis=0))  # whatever is needed once
    gc.collect()
    peak, before = [0], pool.live_bytes
    y = x
    for _ in range(12):
        y = mtl.cumulative_sum(y * 0.5, axis=0) / n  # each takes an array for itself
    original = type(pool).acquire

    def take(self, size):
        buffer = original(self, size)
        peak[0] = max(peak[0], self.live_bytes - before)
        return buffer

    type(pool).acquire = take
    try:
        mtl.eval(y)
    finally:
        type(pool).acquire = original
    assert peak[0] <= 3 * 4 * n


def test_arrays_that_are_referenced_are_materialized():
    x = mtl.asarray(np.ones((100, 200), np.float32))
    total = mtl.exp(x).sum(axis=0)
    mtl.eval(mtl.cumulative_sum(total * 2))
    assert mtl.explain(total).startswith("The values are known") or float(total[0]) > 0
    np.testing.assert_allclose(np.asarray(total), 100 * np.e, rtol=1e-6)


def test_memory_in_a_cycle_of_garbage_is_given_back_once(pool):
    """A buffer that only garbage refers to must not be freed and then used again."""

    class Loop:
        pass

    for _ in range(50):
        loop = Loop()
        loop.self, loop.array = loop, mtl.asarray(np.ones(5, np.float32)) * 2
        mtl.eval(loop.array)
    before = pool.live_buffers
    del loop
    gc.collect()
    assert pool.live_buffers < before
    arrays = [mtl.asarray(np.full(5, k, np.float32)) for k in range(60)]
    for k, array in enumerate(arrays):
        assert np.asarray(array).tolist() == [float(k)] * 5


def test_numpy_retains_the_memory_it_looks_at():
    shown = np.asarray(mtl.ones(1000) * 3)
    others = [mtl.zeros(1000) + k for k in range(5)]
    mtl.eval(*others)
    assert (shown == 3).all()


def test_out_of_memory_leaves_the_expression_usable(monkeypatch):
    x = mtl.asarray(np.ones(10, np.float32)) + 1

    def refuse(self, device, nbytes):
        self._lease = None
        raise mtl.OutOfMemory("[Buffer] no room")

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "__init__", refuse)
        pool_of(x.device).clear()
        with pytest.raises(mtl.OutOfMemory):
            mtl.eval(x)
    assert np.asarray(x).tolist() == [2.0] * 10


def test_too_large_an_array_is_out_of_memory():
    with pytest.raises(mtl.OutOfMemory):
        mtl.eval(mtl.zeros((2**30, 2**20)))


def test_results_of_one_evaluation_are_shared():
    x = mtl.asarray(np.arange(4.0, dtype=np.float32))
    a, b = mtl.exp(x), mtl.exp(x) + 1
    mtl.eval(a, [b], {"c": a})
    np.testing.assert_allclose(np.asarray(b) - 1, np.asarray(a), rtol=1e-6)


def test_async_evaluation_is_waited_for():
    x = mtl.asarray(np.ones(100_000, np.float32))
    y = mtl.exp(x * 0) + x
    mtl.async_eval(y)
    assert (np.asarray(y) == 2).all()


def test_arrays_from_the_host_do_not_share_memory_with_running_launches():
    x = mtl.asarray(np.ones(2**20, np.float32))
    sums = []
    for _ in range(4):
        mtl.async_eval(mtl.sin(mtl.exp(mtl.sin(x))))  # its memory returns to the pool at once
        sums.append(mtl.asarray(np.zeros(2**20, np.float32)))
    assert not any(np.asarray(zeros).any() for zeros in sums)


def test_threads_may_build_and_evaluate_at_once():
    x = mtl.asarray(np.arange(100, dtype=np.float32))
    shared = mtl.sin(x) * 2
    failures = []

    def work(k):
        try:
            for _ in range(20):
                y = (shared + k).sum()
                expected = (np.sin(np.arange(100)) * 2 + k).sum()
                assert abs(float(y) - expected) < 1e-2 * max(1, abs(expected))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_repeated_evaluations_give_each_result_of_a_primitive(order):
    """A result that the plan of its evaluation computes with the other has a value every time."""
    for shift in range(4):
        x = (np.arange(9).reshape(3, 3) % 4 + 5 * np.eye(3) + shift).astype(np.float32)
        factors, chosen = mtl.linalg.qr(mtl.asarray(x)), mtl.top_k(mtl.asarray(x), 2)
        largest = np.argsort(-x, axis=-1, kind="stable")[:, :2]
        for index in order:
            value, expected = np.asarray(factors[index]), np.linalg.qr(x)[index]
            signs = np.sign(value) * np.sign(expected)
            np.testing.assert_allclose(value * signs, expected, atol=2e-5)
            expected = largest if index else np.take_along_axis(x, largest, -1)
            np.testing.assert_array_equal(np.asarray(chosen[index]), expected)


def test_the_record_of_requested_kernels_is_bounded(monkeypatch):
    monkeypatch.setattr(compilation, "_requested", dict.fromkeys(range(5000)))
    x = mtl.asarray([1.0, 2.0])
    mtl.eval(mtl.cosh(mtl.tanh(x) * 3) + 0.5)
    assert len(compilation._requested) == compilation._MAX_KERNELS


@pytest.mark.parametrize("columns", [100, 1021])
def test_many_short_rows(rng, columns):
    """SIMT devices reduce so many rows by a simdgroup each."""
    x = rng.standard_normal((8192, columns)).astype(np.float32)
    rows = mtl.asarray(x)
    expected = x.astype(np.float64).sum(axis=1)
    np.testing.assert_allclose(mtl.sum(rows, axis=1), expected, rtol=0, atol=2e-4)
    np.testing.assert_array_equal(mtl.max(rows, axis=1), x.max(axis=1))
    np.testing.assert_array_equal(mtl.argmax(rows, axis=1), x.argmax(axis=1))
