"""The passes take less than a second for 5,000 instructions; twice that where others are at work."""

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


@pytest.mark.parametrize(
    "shape", [s if s in IN_CI else pytest.param(s, marks=pytest.mark.slow) for s in SHAPES]
)
def test_5000_instructions(shape, monkeypatch):
    lower, lower_kernel, counted = vector.lower, vector.lower_kernel, []

    def counting(*args):
        function = lower_kernel(*args)
        counted.append(sum(1 for _ in function.instructions()))
        return function

    def timed(*args):
        started = time.process_time()
        lower(*args)
        raise MeasuredError(time.process_time() - started)

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
        {"".join(map(statement, range(times)))}
        y[i] = a + b;
    }}"""
    with mtl.config.scope(cache_bytes=0, cpu_engine="simd"), pytest.raises(MeasuredError) as found:
        mtl.library(text).f.engine  # noqa: B018
    print(shape, counted, found.value)
    assert counted[0] >= 5000
    assert found.value.args[0] < 2 * counted[0] / 5000


def test_an_index_that_depends_on_itself_in_many_ways():
    """What divides the index of a private array was asked of each of 3 ** 25 ways."""
    text = f"""kernel void f(device float* y, device const float* x, constant int* n,
                             uint i [[thread_position_in_grid]]) {{
        float r[64];
        for (int j = 0; j < 64; j++) r[j] = x[i * 64 + j];
        int k = n[0] + i;
        {"k = k * k + k; " * 25}
        y[i] = r[k & 60];
    }}"""
    with mtl.config.scope(cache_bytes=0, cpu_engine="simd"):
        started = time.process_time()
        assert mtl.library(text).f.engine.startswith("simd")
    assert time.process_time() - started < 5
