"""Reads of device memory that nothing has written to: fresh buffers, outputs of `metal_kernel`."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.runtime import fast_checks

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """\
#include <metal_stdlib>
using namespace metal;
kernel void copy(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = in[i];
}
kernel void increase(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void twice(device float* x, uint i [[thread_position_in_grid]]) {
    x[i] = i;
    x[i] *= 2;
}
kernel void count(device atomic_uint* total) {
    atomic_fetch_add_explicit(total, 1, memory_order_relaxed);
}
kernel void run(device int* data, device const int2* operations, device int* out, constant int& steps,
                uint i [[thread_position_in_grid]]) {
    int seen = 0;
    for (int k = 0; k < steps; k++) {
        int2 op = operations[i * steps + k];
        device int* x = data + 4 * i + op.y;
        if (op.x == 1) seen += *x;
        if (op.x == 2) *x = k;
        if (op.x == 3) atomic_fetch_add_explicit((device atomic_int*)x, 1, memory_order_relaxed);
    }
    out[i] = seen;
}
"""
N, STEPS = 96, 6
NOTHING, READ, WRITE, UPDATE = range(4)


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE, device="cpu", check=True)


@pytest.fixture(params=["exact", "vector"])
def engine(request, monkeypatch):
    """Which engine looks first."""
    monkeypatch.setattr(fast_checks, "MANY_THREADS", 0 if request.param == "vector" else 10**9)
    monkeypatch.setattr(fast_checks, "MAX_EXACT_SECONDS", 10**9)
    return request.param


def fresh():
    return mtl.Buffer(4 * N, "cpu")


def findings_of(launch):
    with mtl.checking(raises=False) as findings:
        launch()
    assert {finding.kind for finding in findings} <= {"uninitialised"}
    return findings


def test_reads_of_a_fresh_buffer(lib, engine):
    (finding,) = findings_of(lambda: lib.copy(fresh(), fresh(), threads=N))
    assert (finding.memory, finding.count) == ("element 0 of 'in' (device memory)", N)
    assert findings_of(lambda: lib.increase(fresh(), threads=N))
    assert not findings_of(lambda: lib.twice(fresh(), threads=N))
    assert not findings_of(lambda: lib.count(fresh(), threads=N))  # counts from zero
    assert not findings_of(lambda: lib.increase(mtl.Buffer(np.zeros(N, "f4"), "cpu"), threads=N))


def test_a_buffer_is_fresh_until_something_may_write_to_it(lib, engine):
    unchecked = mtl.library(SOURCE, device="cpu")
    for _ in range(3):  # the general launch path, and the fast one
        x = fresh()
        assert x.is_fresh
        unchecked.twice(x, threads=N // 2)
        assert not x.is_fresh
        assert not findings_of(lambda x=x: lib.increase(x, threads=N))
    by_host, by_graph = fresh(), fresh()
    np.asarray(by_host)[:] = 1
    assert not findings_of(lambda: lib.increase(by_host, threads=N))
    graph = mtl.Graph("cpu")
    with graph:
        unchecked.twice(by_graph, threads=N)
    assert by_graph.is_fresh  # it has been recorded alone
    graph.launch(wait=True)
    assert not findings_of(lambda: lib.increase(by_graph, threads=N))
    read = fresh()
    unchecked.copy(read, np.zeros(N, "f4"), threads=N)
    assert read.is_fresh


def test_arrays_have_values(lib):
    assert not findings_of(
        lambda: lib.increase(mtl.arange(N, dtype="float32", device="cpu"), threads=N)
    )


def test_outputs_of_metal_kernel(engine):
    add = mtl.metal_kernel(
        "add", ["a"], ["out"], "uint i = thread_position_in_grid.x; out[i] += a[i];"
    )
    total = mtl.metal_kernel(
        "total", ["a"], ["out"],
        "atomic_fetch_add_explicit(&out[0], a[thread_position_in_grid.x], memory_order_relaxed);",
        atomic_outputs=True,
    )  # fmt: skip
    for kernel, size in (add, N), (total, 1):
        for values in np.ones(N, "f4"), mtl.ones(N, device="cpu"):
            for initial in None, 0:

                def call(kernel=kernel, values=values, size=size, initial=initial):
                    (out,) = kernel(
                        inputs=[values], grid=(N, 1, 1), threadgroup=(32, 1, 1), output_shapes=[(size,)],
                        output_dtypes=["float32"], init_value=initial, device="cpu",
                    )  # fmt: skip
                    assert float(np.asarray(out).sum()) == N

                assert bool(findings_of(call)) == (initial is None)


def test_message(lib):
    with pytest.raises(
        mtl.SanitizerError, match=r"zeros are meant.*mtl.Buffer\(numpy.zeros"
    ) as error:
        lib.increase(fresh(), threads=N)
    assert "element 0 of 'x' (device memory)" in str(error.value)


def check(lib, seed):
    """Whether random threads, each on elements of its own, read some that they have not written."""
    random = np.random.default_rng(seed)
    operations = np.zeros((N, STEPS, 2), np.int32)
    operations[..., 0] = random.choice((NOTHING, WRITE, UPDATE), (N, STEPS))
    operations[..., 1] = random.integers(4, size=(N, STEPS))
    has_value = np.zeros((N, 4), bool)
    is_defect = bool(random.integers(2))
    missing = 0
    for k in range(STEPS):
        act, element = operations[:, k].T
        written = has_value[np.arange(N), element]
        may_read = written | (is_defect & (random.random(N) < 0.01))
        operations[:, k, 0] = act = np.where(may_read & (random.random(N) < 0.6), READ, act)
        missing += int(((act == READ) & ~written).sum())
        has_value[np.arange(N), element] |= (act == WRITE) | (act == UPDATE)
    findings = findings_of(
        lambda: lib.run(
            mtl.Buffer(16 * N, "cpu"), operations, np.zeros(N, np.int32), STEPS, threads=N
        )
    )
    assert sum(finding.count for finding in findings) == missing, seed
    return missing > 0


def test_random_threads(lib, engine):
    outcomes = {check(lib, seed) for seed in range(20)}
    assert outcomes == {True, False}


@pytest.mark.slow
def test_many_random_threads(lib, engine):
    for seed in range(20, 1500):
        check(lib, seed)
