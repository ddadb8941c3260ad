"""The queue of the CPU's native runtime, its threads, and fork."""

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from native_kernels import harness
from native_kernels.harness import FIBRE, LOOP, word


def affine_chain(kernels, length, size=4096):
    """Launches that give another result in any other order; their tickets and a check."""
    values = np.arange(size, dtype=np.uint32)
    expected, offsets = values.copy(), [word(i) for i in range(length)]
    tickets = []
    for offset in offsets:
        tickets.append(kernels.submit("affine", size, 32, values, offset))
        expected = expected * 3 + offset[0]
    return tickets, lambda: np.testing.assert_array_equal(values, expected), offsets


def test_launches_run_in_the_order_of_submission(kernels, threads):
    tickets, check, _alive = affine_chain(kernels, 300)
    assert tickets == sorted(tickets)
    assert kernels.wait(tickets[-1]).status == harness.OK
    check()
    for ticket in tickets[:-1]:
        assert kernels.runtime.done(ticket)
        assert kernels.wait(ticket).status == harness.OK
    assert kernels.wait(tickets[0]).status == harness.UNKNOWN_TICKET


def test_run_comes_after_what_is_queued(kernels, threads):
    for _ in range(20):
        log = np.zeros(64, np.uint32)
        numbers = [word(i) for i in range(1, 21)]
        tickets = [kernels.submit("append", 1, 1, log, number) for number in numbers[:-1]]
        kernels.run("append", 1, 1, log, numbers[-1])
        np.testing.assert_array_equal(log[:21], [20, *range(1, 21)])
        for ticket in tickets:
            kernels.runtime.forget(ticket)


def test_empty_launches_run_in_the_order_of_the_queue(kernels, threads):
    tickets, check, _alive = affine_chain(kernels, 20)
    last = kernels.submit("nothing", 0, 1)
    assert kernels.wait(last).status == harness.OK
    check()
    for ticket in tickets:
        kernels.runtime.forget(ticket)


def test_wait_with_a_limit(kernels):
    out, steps = np.zeros(64, np.uint32), word(1_000_000_000)
    ticket = kernels.submit("burn", 1, 1, out, steps)
    assert not kernels.runtime.done(ticket)
    assert kernels.wait(ticket, 0.02) is None
    assert kernels.wait(ticket, 0) is None
    outcome = kernels.wait(ticket, 60)
    assert outcome.status == harness.OK
    assert outcome.seconds > 0.02


def test_waiting_with_a_limit_helps_and_finishes(kernels, threads):
    cost = np.zeros(1)
    for _ in range(5):
        counters = np.zeros(1 << 18, np.uint32)
        ticket = kernels.submit("count", 1 << 18, 16, counters, cost=cost)
        assert kernels.wait(ticket, 60).status == harness.OK
        assert (counters == 1).all()


def test_forgotten_launches_still_run(kernels):
    counters = np.zeros(1000, np.uint32)
    ticket = kernels.submit("count", 1000, 10, counters)
    kernels.runtime.forget(ticket)
    kernels.runtime.forget(ticket)
    assert kernels.wait(kernels.submit("nothing", 1, 1)).status == harness.OK
    assert (counters == 1).all()


def test_a_failed_launch_does_not_stop_the_queue(kernels, threads):
    counters = np.zeros(1000, np.uint32)
    bad = kernels.submit("wild_write", 1000, 10, 0)
    good = kernels.submit("count", 1000, 10, counters)
    assert kernels.wait(good).status == harness.OK
    assert kernels.wait(bad).status == harness.SIGNAL
    assert (counters == 1).all()


@pytest.mark.parametrize("groups", [2, 7, 128])
def test_rows_of_short_launches(kernels, threads, groups):
    """Each is said to take 20 us: short, but worth several threads where they come in a row."""
    values, cost = np.arange(32 * groups, dtype=np.uint32), np.zeros(1)
    expected = values.copy()
    for i in range(500):
        cost[0] = 20_000 / groups
        assert (
            kernels.run("affine", values.size, 32, values, word(i), cost=cost).status == harness.OK
        )
        expected = expected * 3 + np.uint32(i)
    np.testing.assert_array_equal(values, expected)


def test_in_rows_threads_have_equal_shares(kernels, threads):
    """The caller the first, so that each finds in its cache what it worked on before."""
    runners, cost, steps = np.zeros(16, np.uint64), np.zeros(1), word(20_000)
    kernels.run("sign", 1, 1, runners, word(0))
    caller, until = runners[0], time.monotonic() + 30
    share, is_shared = -(-16 // threads), False
    while not is_shared and time.monotonic() < until:
        cost[0] = 29_000 / 16  # of what is said to be short
        kernels.run("sign", 16, 1, runners, steps, cost=cost)
        ran = [set(runners[at : at + share]) for at in range(0, 16, share)]
        if threads == 1:
            assert ran == [{caller}]
            return
        is_shared = ran[0] == {caller} and caller not in ran[1] and all(len(x) == 1 for x in ran)
    assert is_shared


def test_a_fault_in_a_row(kernels, threads):
    cost = np.zeros(1)
    for _ in range(50):
        cost[0] = 1_000
        counters = np.zeros(20, np.uint32)
        assert kernels.run("count", 20, 1, counters, cost=cost).status == harness.OK
        assert (counters == 1).all()
        cost[0] = 1_000
        assert kernels.run("trap", 20, 1, cost=cost).status == harness.SIGNAL


def launch_of_every_kind(kernels, seed, failures):
    """Run launches of every kind, as one of many threads does at the same time."""
    rng = np.random.default_rng(seed)
    try:
        for _ in range(30):
            size = int(rng.integers(1, 20_000))
            counters = np.zeros(size, np.uint32)
            mode = int(rng.integers(0, 2))
            if rng.random() < 0.5:
                assert kernels.run("count", size, 50, counters, mode=mode).status == harness.OK
            else:
                ticket = kernels.submit("count", size, 50, counters, mode=mode)
                assert kernels.wait(ticket, rng.choice([-1.0, 60.0])).status == harness.OK
            assert (counters == 1).all()
            assert kernels.run("trap", size, 5, mode=mode).status == harness.SIGNAL
            outcome = kernels.run("deserter", 64, 64, word(5), mode=FIBRE)
            assert outcome.status == harness.BARRIER_MISSED
    except BaseException as error:
        failures.append(error)


def test_many_threads_launch_at_once(kernels, threads):
    failures = []
    callers = [
        threading.Thread(target=launch_of_every_kind, args=(kernels, seed, failures))
        for seed in range(12)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures, failures[0]


@pytest.mark.slow
def test_threads_take_their_stacks_with_them(kernels):
    """500 callers one after another; each had 8 MiB of stack and 1024 fibres with 256 KiB."""

    def mappings():
        return len(Path("/proc/self/maps").read_text().splitlines())

    def call():
        kernels.run("deserter", 1024, 1024, word(5), mode=FIBRE)

    counts = []
    for _ in range(500 if sys.platform == "linux" else 0):
        caller = threading.Thread(target=call)
        caller.start()
        caller.join()
        counts.append(mappings())
    assert max(counts[10:]) < counts[10] + 50


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_launches(kernels, threads):
    counters = np.zeros(100_000, np.uint32)
    parent = kernels.submit("count", 100_000, 10, counters)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert kernels.wait(parent).status == harness.UNKNOWN_TICKET
            for mode in (LOOP, FIBRE):
                kernels.check_alive(mode)
                own = np.zeros(100_000, np.uint32)
                ticket = kernels.submit("count", 100_000, 10, own, mode=mode)
                assert kernels.wait(ticket).status == harness.OK
                assert (own == 1).all()
                assert kernels.run("wild_write", 10, 1, 0, mode=mode).status == harness.SIGNAL
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kernels.wait(parent).status == harness.OK
    assert (counters == 1).all()
