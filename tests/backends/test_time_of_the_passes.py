"""The passes take time in proportion to the instructions.

Times are compared with that of a fixed workload on the same machine, and the verifier is off: it
would be counted with every pass.
"""

import functools
import re
import time

import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import vector

pytestmark = pytest.mark.needs("the CPU")

WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def nested(depth):
    inner = nested(depth - 1) if depth else ""
    return (
        f"if (a > x[i + {depth}]) {{ a = a * {depth}.5f + x[i * {depth + 1}]; {inner} b += a; }} "
        f"else {{ b = b * a - {depth}.25f; y[i + {depth}] = b; }}"
    )


#: Times of the workload that 5,000 instructions of a shape may take: at least twice what they take.
LIMITS = {"barriers in loops": 40, "counted loops": 60, "loops that are left": 25}
DEFAULT_LIMIT = 20

#: Statements that are repeated for k = 0, 1, 2 ..., and how often.
SHAPES = {
    "stores behind branches": (
        263,
        lambda k: (
            f"a = a * x[i + {k}] + (b > a ? b : x[{k}]); b = b * a - {k}.5f; "
            f"if (b > {k}) y[i + {k}] = a;"
        ),
    ),
    "barriers in loops": (
        215,
        lambda k: (
            f"for (int j = 0; j < n[{k}]; j++) {{ s[t] = a; {WAIT} "
            f"a = a * s[(t + {k + 1}) & 255] + b; {WAIT} }}"
        ),
    ),
    "loops in loops": (
        130,
        lambda k: (
            f"for (int j = 0; j < m[i + {k}]; j++) {{ for (int l = j; l < m[l]; l++) "
            f"{{ if (a > x[l]) continue; a = a * x[l * {k + 1}] + b; }} b += a; }}"
        ),
    ),
    "barriers": (
        290,
        lambda k: (
            f"s[t] = a; {WAIT} a = a * s[(t + {k + 1}) & 255] + b; "
            f"if (t < {k}) b += s[t & {k}]; {WAIT}"
        ),
    ),
    "counted loops": (
        330,
        lambda k: f"for (uint j = t; j < n[{k}]; j += 256) b += a * x[j * {k + 1}];",
    ),
    "loops that are left": (
        280,
        lambda k: (
            f"while (a < x[i + {k}]) {{ a += b; if (b > {k}.5f) return; b *= 1.5f; }} "
            f"y[i + {k}] = a;"
        ),
    ),
    "branches in branches": (10, lambda k: nested(25)),
    "switches": (
        260,
        lambda k: (
            f"switch (m[i + {k}]) {{ case 0: a += b; break; case 1: b *= a; break; "
            f"case 2: y[i + {k}] = a; case 3: a -= 1; break; default: b -= x[i + {k}]; }}"
        ),
    ),
    "components": (
        180,
        lambda k: (
            f"float4 u{k} = v[i + {k}]; u{k} = u{k} * v[i] + v[i + 1].wzyx; "
            f"if (u{k}.x > {k}) w[i + {k}] = u{k};"
        ),
    ),
    "private arrays": (
        300,
        lambda k: f"r[m[i + {k}] & 63] += a * r[{k % 64}]; a = r[m[{k}] & 63];",
    ),
    "simdgroup functions": (
        400,
        lambda k: (
            f"a += simd_sum(a * b) + simd_shuffle_xor(a, {1 << k % 5}); "
            f"b = simd_prefix_exclusive_sum(b) + x[i + {k}];"
        ),
    ),
}
#: Those that found passes in quadratic time are not slow tests.
IN_CI = ("stores behind branches", "barriers in loops", "loops in loops", "barriers")


class MeasuredError(Exception):
    pass


def workload():
    """The process time of work in Python like that of the passes, on any machine about as fast."""
    text = "".join(f"%v{k} = fadd float %v{k // 2}, %v{k * 7 % (k + 1)}\n" for k in range(20_000))
    started = time.process_time()
    uses = {}
    for line in text.splitlines():
        name, _, operands = line.partition(" = ")
        for used in re.findall(r"%\w+", operands):
            uses.setdefault(used, []).append((name, operands.split()))
    return time.process_time() - started


def relative_time(function, limit):
    """The time of a function in those of the workload; the better of two, if the first is over a limit."""
    times = []
    while not times or (min(times) > limit and len(times) < 2):
        before, started = workload(), time.process_time()
        function()
        took = time.process_time() - started
        times.append(2 * took / (before + workload()))
    return min(times)


def measure(monkeypatch, shape, limit, scale=1):
    """The instructions of a shape, and the time of its passes for 5,000 of them."""
    lower, lower_kernel, counted = vector.lower, vector.lower_kernel, []

    def counting(*args):
        function = lower_kernel(*args)
        counted.append(sum(1 for _ in function.instructions()))
        return function

    def timed(*args):
        lower_once = functools.partial(lower, *args)
        raise MeasuredError(relative_time(lower_once, limit))

    monkeypatch.setattr(vector, "lower", timed)
    monkeypatch.setattr(vector, "lower_kernel", counting)
    times, statement = SHAPES[shape]
    text = f"""#include <metal_stdlib>
    using namespace metal;
    kernel void f(device float* y, device const float* x, constant uint* n, device const int* m,
                  device const float4* v, device float4* w,
                  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {{
        threadgroup float s[256];
        float r[64], a = x[i], b = 1;
        for (int j = 0; j < 64; j++) r[j] = x[i * 64 + j];
        {"".join(map(statement, range(times * scale)))}
        y[i] = a + b;
    }}"""
    settings = {"cache_bytes": 0, "cpu_engine": "simd", "verify_passes": False}
    with mtl.config.scope(**settings), pytest.raises(MeasuredError) as raised:
        mtl.library(text).f.engine  # noqa: B018
    return counted[0], raised.value.args[0] * 5000 / counted[0]


@pytest.mark.parametrize(
    "shape", [s if s in IN_CI else pytest.param(s, marks=pytest.mark.slow) for s in SHAPES]
)
@pytest.mark.sample(1)
def test_5000_instructions(shape, monkeypatch):
    limit = LIMITS.get(shape, DEFAULT_LIMIT)
    count, took = measure(monkeypatch, shape, limit)
    print(shape, count, took)
    assert count >= 5000
    assert took < limit


@pytest.mark.slow
def test_a_pass_in_quadratic_time_exceeds_the_limit(monkeypatch):
    """A pass that looks at all instructions for each of them exceeds the limit."""
    lower_kernel = vector.lower_kernel

    def lower_slowly(*args):
        function = lower_kernel(*args)
        for each in function.instructions():
            assert sum(1 for other in function.instructions() if other is each) == 1
        return function

    monkeypatch.setattr(vector, "lower_kernel", lower_slowly)
    _, took = measure(monkeypatch, "stores behind branches", DEFAULT_LIMIT, scale=2)
    print(took)
    assert took > DEFAULT_LIMIT


def test_an_index_that_depends_on_itself_by_many_paths():
    """Divisors of the index of a private array are computed once a value, not for 3 ** 25 paths."""
    text = f"""kernel void f(device float* y, device const float* x, constant int* n,
                             uint i [[thread_position_in_grid]]) {{
        float r[64];
        for (int j = 0; j < 64; j++) r[j] = x[i * 64 + j];
        int k = n[0] + i;
        {"k = k * k + k; " * 25}
        y[i] = r[k & 60];
    }}"""
    settings = {"cache_bytes": 0, "cpu_engine": "simd", "verify_passes": False}
    with mtl.config.scope(**settings):
        started = time.process_time()
        assert mtl.library(text).f.engine.startswith("simd")
    assert time.process_time() - started < 100 * workload()
