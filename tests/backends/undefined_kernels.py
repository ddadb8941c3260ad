"""Kernels that do what Metal leaves undefined; as a script, runs every nth and says what became of each.

In a process of its own: it must neither be killed nor hang.
"""

import json
import sys

import numpy as np

import metalloid as mtl

BARRIER, LANE = "barrier", "lane"
DIVISION, MODULO = "integer division by zero", "modulo"
RUNS = ""
_CANARY = 0x5CA1AB1E

_WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup)"

#: Body of a kernel with 64 threads and zeros in x; and a word of the fault, or that it runs.
CASES = {
    "a barrier that every second thread reaches": (f"x[i] = 1; if (i % 2) {_WAIT}; x[i] = 2;", BARRIER),
    "a barrier behind a return": (f"if (i >= 40) return; {_WAIT}; x[i] = 2;", BARRIER),
    "two barriers for two simdgroups": (
        f"if (i < 32) {{ x[i] = 1; {_WAIT}; x[i] = 5; }} else {{ x[i] = 3; {_WAIT}; x[i] = 7; }}", BARRIER,
    ),
    "a barrier in a loop of different rounds": (f"for (uint n = 0; n < i; ++n) {{ {_WAIT}; x[i] += 1; }}", BARRIER),
    "a shuffle from lane 40": ("x[i] = simd_shuffle(int(i), ushort(x[i] + 40));", LANE),
    "a broadcast from lane 33": ("x[i] = simd_broadcast(int(i), ushort(x[i] + 33));", LANE),
    "a quad shuffle from lane 5": ("x[i] = quad_shuffle(int(i), ushort(x[i] + 5));", LANE),
    "a shuffle by too many lanes": ("x[i] = simd_shuffle_up(int(i), ushort(x[i] + 60));", RUNS),
    "a shuffle from lanes that take no part": ("if (i % 3) x[i] = simd_shuffle_xor(int(i), 1);", RUNS),
    "a modulo of three": ("x[i] = simd_shuffle_and_fill_up(int(i), 7, 1, ushort(x[i] + 3));", MODULO),
    "a race": ("for (int n = 0; n < 100; ++n) x[(i * 7 + n) & 63] += x[n & 63];", RUNS),
    "NaN as integers": ("float f = as_type<float>(x[i] | 0x7fc00000); x[i] = int(f) + int(uint(f)) + char(f);", RUNS),
    "infinity as an index": ("x[int(as_type<float>(x[i] | 0x7f800000)) & 63] = 1;", RUNS),
    "too large for an integer": ("float f = 1e30f * (x[i] - 1); x[i] = int(f) ^ int(short(f));", RUNS),
    "shifts by more than the width": ("x[i] = (7 << (x[i] + 33)) + (x[i] >> (i + 30)) + int(1u << (31 + i));", RUNS),
    "int / 0": ("x[i] = 100 / x[i];", DIVISION),
    "int % 0": ("x[i] = 100 % x[i];", DIVISION),
    "int / 0 in one lane": ("x[i] = 100 / int(i % 40);", DIVISION),
    "uint / 0": ("x[i] = int(100u / uint(x[i]));", DIVISION),
    "long / 0": ("x[i] = int(100l / long(x[i]));", DIVISION),
    "short / 0": ("x[i] = short(100) / short(x[i]);", DIVISION),
    "the same / 0 for all": ("x[i] = 100 / x[0];", DIVISION),
    "the smallest integer / -1": ("x[i] = (x[i] - 2147483647 - 1) / (x[i] - 1);", DIVISION),
    "/ 0 that the compiler sees": ("uint z = i - i; x[i] = 100 / z;", RUNS),
    "an enumerator that there is not": (
        "E e = E(x[i] + int(i)); switch (e) { case E::a: x[i] = 1; break; case E::b: x[i] = 2; break; }", RUNS,
    ),
    "a component that there is not": ("float4 v = float4(i); v[x[i] + i] = 2; x[i] = int(v[x[i] + int(i)]);", RUNS),
    "bits beyond the width": ("x[i] = extract_bits(x[i] - 1, i, 40u);", RUNS),
    "the end of a private array": ("int a[4] = {1, 2, 3, 4}; a[x[i]] = 2; x[i] = a[(i + x[i]) & 7];", "of 'a', which has 4"),
    "a load of the next element": ("x[i] = x[i + 1];", "index 64 of 'x', which has 64"),
    "a load from far away": ("x[i] = x[i + 0x40000000u];", "of 'x', which has 64"),
    "a load from far away in one lane": ("x[i] = x[i == 13 ? 0x40000000u : i];", "of 'x', which has 64"),
    "a store to far away": ("x[i + 0x40000000u] = 3;", "of 'x', which has 64"),
    "a store to far below": ("x[int(i) - 0x40000000] = 3;", "of 'x', which has 64"),
}  # fmt: skip
_HEADER = "#include <metal_stdlib>\nusing namespace metal;\nenum class E { a, b };\n"


def outcome(body):
    """The outcome of a kernel: the message of its fault, if it has one."""
    parameters = "device int* x, uint i [[thread_position_in_grid]]"
    lib = mtl.library(f"{_HEADER}kernel void f({parameters}) {{ {body} }}")
    following = mtl.library(f"{_HEADER}kernel void f({parameters}) {{ x[i] += int(i); }}")
    memory = np.full(64 * 3, _CANARY, np.int32)
    x = memory[64:128]
    x[:] = 0
    message = RUNS
    try:
        lib.f(x, threads=64, group_size=64, wait=True)
    except mtl.KernelFault as fault:
        message = str(fault)
    assert (memory[:64] == _CANARY).all(), "overwritten"
    assert (memory[128:] == _CANARY).all(), "overwritten"
    x[:] = 1
    following.f(x, threads=64)
    assert (x == np.arange(1, 65)).all(), "the next launch is wrong"
    return message


if __name__ == "__main__":
    with mtl.config.scope(cpu_engine=sys.argv[1]):
        for name, (body, _) in list(CASES.items())[:: int(sys.argv[2])]:
            print(json.dumps([name, outcome(body)]), flush=True)
