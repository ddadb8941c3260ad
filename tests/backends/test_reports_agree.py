"""Logs and assertions of vector code are those of the reference engine."""

import numpy as np
import pytest
from test_engines_agree import logged

import metalloid as mtl
from metalloid.backends.cpu.compile import variants

pytestmark = [
    pytest.mark.needs("the CPU"),
    pytest.mark.skipif(mtl.config.cpu_engine != "simd", reason="compares the engines"),
]

HEADER = """
#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
constant os_log own("com.example", "own");
"""
LOGS = {
    "some lanes": 'if (x[i] > 5) os_log_default.log("%d %v2d", x[i], int2(i, -x[i])); y[i] = x[i];',
    "all lanes": 'own.log_info("%d", x[i]); y[i] = 2 * x[i];',
    "a loop that lanes leave": 'for (int k = 0; k < x[i]; ++k) { own.log("%d %d", k, x[i]); y[i] += k; }',
    "both ways of a branch": 'if (x[i] & 1) own.log("odd"); else own.log_error("even %s", "text"); y[i] = 1;',
    "one that returns": 'if (x[i] < 3) { own.log("%d", i); return; } y[i] = x[i];',
    "the same for all": 'if (n > 3) own.log("%d of %d", n, x[0]); y[i] = n;',
    "fractions": 'if (x[i] == 4) own.log("%f %g", x[i] / 8.0f, double_of(x[i])); y[i] = x[i];',
}
PARAMETERS = (
    "device int* y, device const int* x, constant int& n, uint i [[thread_position_in_grid]],"
    " uint lid [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]"
)


def text(bodies, waits):
    before = "threadgroup int all[1024]; all[lid] = x[i];\n" * waits
    meet = "threadgroup_barrier(mem_flags::mem_threadgroup);\n" * waits
    after = f"{meet}y[i] += all[(lid + 1) % size];\n" * waits
    kernels = (
        f"kernel void k{number}({PARAMETERS}) {{\n{before}{body.replace('return;', 'y[i] = 0;')}\n{after}}}\n"
        if waits
        else f"kernel void k{number}({PARAMETERS}) {{\n{body}\n}}\n"
        for number, body in enumerate(bodies)
    )
    helper = "static float double_of(int x) { return 2.0f * x; }\n"
    return HEADER + helper + "".join(kernels)


def of_both_engines(source):
    libraries = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            libraries.append(mtl.library(source))
            [libraries[-1][name] for name in libraries[-1]]
    return libraries


@pytest.fixture
def every_launch_has_its_variant(monkeypatch):
    monkeypatch.setattr(variants, "_MAX_THREADS_WITHOUT_MASKS", 0)


@pytest.mark.parametrize(
    "waits", [pytest.param(False, marks=pytest.mark.slow), True], ids=["independent", "waiting"]
)
def test_messages_agree_thread_by_thread(waits, every_launch_has_its_variant):
    x = np.random.default_rng(3).integers(0, 9, 300, dtype=np.int32)
    libraries = of_both_engines(text(LOGS.values(), waits))
    for name, what in zip(libraries[1], LOGS, strict=True):
        assert libraries[1][name].engine.startswith("simd"), libraries[1][name].engine
        for threads, group in ((300, 100), (70, 70), (96, 32), (5, 5)):
            results = []
            for lib in libraries:
                y = np.zeros(threads, np.int32)
                with logged() as log:
                    lib[name](y, x, 7, threads=threads, group_size=group)
                results.append((log.of_thread, y.tolist()))
            assert results[0] == results[1], (what, threads, group)
            assert results[1][0] or what == "fractions", what


def test_two_rows_of_threads_log_where_they_are(every_launch_has_its_variant):
    source = HEADER + (
        "kernel void k(constant int& n, uint2 p [[thread_position_in_grid]]) {\n"
        'if (int(p.x + p.y) % n == 0) os_log_default.log("%d %d", p.x, p.y); }\n'
    )
    logs = []
    for lib in of_both_engines(source):
        with logged() as log:
            lib.k(5, threads=(70, 6), group_size=(17, 2), wait=True)
        logs.append(log.of_thread)
    assert logs[0] == logs[1]
    assert sum(map(len, logs[1].values())) == 70 * 6 // 5


ASSERTIONS = {
    "in front of all else": "assert(x[i] < 100); y[i] = x[i];",
    "behind a store": "y[i] = x[i]; assert(x[i] < 100);",
    "in a branch": "if (x[i] > 50) { y[i] = 3; assert(x[i] < 100); y[i] += 1; }",
    "in a loop": "for (int k = 0; k < 4; ++k) { assert(x[i] + k < 103); y[i] += k; }",
    "in a loop that lanes leave": "for (int k = 0; k < (x[i] & 3); ++k) { assert(x[i] < 100); y[i] += k; }",
    "two of which one fails": "assert(i < 1000 && n == 7); assert(x[i] < 100); y[i] = 1;",
    "of the index": "assert(i != 41 || x[0] != 1); y[i] = x[i];",
    "of what all have": "assert(n == 7 || x[1] < 5); y[i] = x[i];",
    "that is false": "if (x[i] >= 100) { y[0] = 9; assert(false); } y[i] = x[i];",
    "negated": 'if (x[i] >= 100) assert(!"too large"); y[i] = x[i];',
    "in a function": "y[i] = checked(x[i]);",
}
CHECKED = "static int checked(int a) { assert(a < 100); return a + 1; }\n"


@pytest.mark.parametrize(
    "waits", [pytest.param(False, marks=pytest.mark.slow), True], ids=["independent", "waiting"]
)
def test_the_thread_whose_assertion_fails_is_the_same(waits, every_launch_has_its_variant):
    source = text(ASSERTIONS.values(), waits).replace("static float", CHECKED + "static float")
    libraries = of_both_engines(source)
    for name, what in zip(libraries[1], ASSERTIONS, strict=True):
        assert libraries[1][name].engine.startswith("simd"), libraries[1][name].engine
        for bad in (0, 41, 99, 137):
            results = []
            for lib in libraries:
                x = np.full(150, 51, np.int32)
                y = np.zeros(150, np.int32)
                lib[name](y, x, 7, threads=150, group_size=150)
                good = y.tolist()
                x[bad] = 103
                x[0] = 1 if bad == 41 else x[0]
                n = 8 if "all have" in what else 7
                try:
                    lib[name](y, x, n, threads=150, group_size=150)
                    results.append((good, None))
                except mtl.KernelFault as fault:
                    results.append((good, (str(fault), fault.threadgroup, fault.thread)))
            assert results[0] == results[1], (what, bad)
            assert results[1][1] or "index" in what, (what, bad)


def test_an_assertion_leaves_control_flow_as_it_is():
    """Lanes do not diverge at it: what follows needs no masks."""
    lib = mtl.library(text(["assert(x[i] < 100); y[i] = x[i];"], waits=False))
    code = lib.k0.asm["ll"]
    vector_code = code[code.index("@mtl_threads(") :]
    assert "masked.store" not in vector_code.split("\n}")[0]


def test_a_fault_names_its_thread_among_fused_threadgroups():
    """Narrow threadgroups are joined; a fault names the thread in its own."""
    lib = mtl.library(text(["assert(x[i] < 100); y[i] = x[i];"], waits=False).replace(
        ", uint lid [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]]", ""))  # fmt: skip
    x, y = np.zeros(64, np.int32), np.zeros(64, np.int32)
    x[45] = 100
    with pytest.raises(mtl.KernelFault) as fault:
        lib.k0(y, x, 7, threads=64, group_size=4)
    assert lib.k0._program.can_fuse
    assert (fault.value.threadgroup, fault.value.thread) == ((11, 0, 0), (1, 0, 0))
