"""Schedules: races change results under some seed, correct kernels never do."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.runtime.launch.schedules import scheduled_launches

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void count(device int* plain, device atomic_int* atomic, device int* order,
                  uint g [[threadgroup_position_in_grid]]) {
    plain[0] += 1;
    order[g] = atomic_fetch_add_explicit(atomic, 1, memory_order_relaxed);
}
kernel void wait_for_other(device atomic_int* flag, uint l [[thread_position_in_grid]]) {
    if (l == 0) while (atomic_load_explicit(flag, memory_order_relaxed) == 0) {}
    else atomic_store_explicit(flag, 1, memory_order_relaxed);
}
kernel void fails(device int* at, device int* x, uint i [[thread_position_in_grid]]) {
    int here = at[0];
    at[0] = 5 * i;
    x[here] = 1;
}
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE, device="cpu")


def counted(lib):
    plain, atomic, order = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(4, np.int32)
    lib.count(plain, atomic, order, threads=4 * 64, group_size=64)
    return {"plain": plain, "atomic": atomic, "order": order}


def test_races_change_results_and_atomic_functions_do_not(lib):
    exploration = mtl.explore(lambda: counted(lib), seeds=20)
    assert exploration.differs
    assert sum(len(outcome.seeds) for outcome in exploration.outcomes) == 20
    counts = {int(outcome.result["plain"][0]) for outcome in exploration.outcomes}
    assert min(counts) < 128 <= max(counts) <= 256  # updates are lost
    assert {int(outcome.result["atomic"][0]) for outcome in exploration.outcomes} == {256}
    # Each threadgroup is the first one and the last one under some seed.
    orders = [tuple(np.argsort(outcome.result["order"])) for outcome in exploration.outcomes]
    assert {order[0] for order in orders} == {order[-1] for order in orders} == {0, 1, 2, 3}
    for outcome in exploration.outcomes[:3]:
        repeated = exploration.replay(outcome.seeds[-1])
        assert all(np.array_equal(repeated[name], outcome.result[name]) for name in repeated)
    assert "elements differ)" in repr(exploration)


@pytest.mark.slow
def test_threads_wait_for_each_other(lib):
    """In order, the first thread would never end."""

    def launch():
        flag = np.zeros(1, np.int32)
        lib.wait_for_other(flag, threads=2, timeout=0.1)
        return flag

    outcomes = mtl.explore(launch, seeds=6).outcomes
    assert any(outcome.error is None for outcome in outcomes)
    assert all(isinstance(outcome.error, mtl.LaunchTimeout | None) for outcome in outcomes)


@pytest.mark.slow
def test_faults_are_outcomes(lib):
    def launch():
        x = np.zeros(4, np.int32)
        lib.fails(np.zeros(1, np.int32), x, threads=2)
        return x

    exploration = mtl.explore(launch, seeds=10)
    errors = {type(outcome.error) for outcome in exploration.outcomes}
    assert errors == {type(None), mtl.KernelFault}
    assert "KernelFault: [fails] " in repr(exploration)


def test_schedules_can_be_checked(lib):
    """Each schedule has the race, whatever comes first."""
    kernel = mtl.library(SOURCE, device="cpu", check=True).fails
    sizes = kernel._program.default_group_size((1024, 1, 1))
    kinds = set()
    with mtl.checking(raises=False) as findings:
        for seed in range(4):
            with mtl.config.scope(schedule=seed):
                counted(lib)
            kinds |= {finding.kind for finding in findings}
    assert kinds == {"race"}
    with mtl.config.scope(schedule=0), pytest.raises(mtl.SanitizerError):
        kernel(np.zeros(1, np.int32), np.zeros(9, np.int32), threads=2)
    assert kernel._program.default_group_size((1024, 1, 1)) == sizes


def test_functions_that_cannot_be_explored(lib):
    x = np.zeros(1, np.int32)
    with pytest.raises(mtl.ArgumentError, match="made no launch on the CPU"):
        mtl.explore(lambda: x)
    with pytest.raises(mtl.ArgumentError, match="two runs with the seed 0 have different results"):
        mtl.explore(lambda: lib.count(x, x, np.zeros(64, np.int32), threads=64) and x)
    with pytest.raises(mtl.ArgumentError, match="must return the arrays to compare, got None"):
        mtl.explore(lambda: None)
    for seeds in (0, [-1], []):
        with pytest.raises(mtl.ArgumentError, match="seeds must be a number of seeds"):
            mtl.explore(lambda: counted(lib), seeds)


def test_repeated_evaluations_and_compiled_functions_are_scheduled():
    """They run launches that were bound before."""
    add = mtl.compile(lambda x: x + 1)
    x = mtl.arange(8, dtype=mtl.float32, device="cpu")
    for compute in (lambda: x + 1, lambda: add(x)):
        for _ in range(4):
            expected = np.asarray(compute())
        before = scheduled_launches()
        with mtl.config.scope(schedule=3):
            assert np.array_equal(np.asarray(compute()), expected)
        assert scheduled_launches() == before + 1
        assert np.array_equal(np.asarray(compute()), expected)
        assert scheduled_launches() == before + 1
