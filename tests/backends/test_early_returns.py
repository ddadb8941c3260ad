"""Threads that return before a barrier do not keep the others from it, on a device of OpenCL.

On Intel's runtime for CPUs no thread gets further than the last subgroup: without
`early_returns.py` the results of these kernels are not written.
"""

import numpy as np
import pytest
from random_kernels import HEADER, Generator
from test_engines_agree import WAITING
from test_opencl_agrees import COUNT, check_text

import metalloid as mtl

KERNEL = """
#include <metal_stdlib>
using namespace metal;
#define WAIT threadgroup_barrier(mem_flags::mem_threadgroup)

kernel void k(device int* out, constant int& live, constant int& count, threadgroup int* t,
              uint n [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]])
{
    const int id = n;
    %s
}
"""
BODIES = {
    "at the start": "if (id >= live) return; t[id] = id; WAIT; out[i] = t[(id + 1) % live];",
    "after a barrier": "t[id] = id; WAIT; if (id >= live) { out[i] = -id; return; }"
                       " int s = t[id ^ 1]; WAIT; t[id] = s; WAIT; out[i] = t[(id + 1) % live];",
    "twice": "if (id == 3) return; t[id] = id; WAIT; if (id >= live) return; int s = t[live - 1];"
             " WAIT; t[id] = s + id; WAIT; out[i] = t[live / 2];",
    "in a loop": "int s = 0; t[id] = 0; WAIT; for (int r = 0; r < count; ++r) {"
                 " t[id] = r + id; WAIT; s += t[0]; if (id >= live + r) { out[i] = s; return; }"
                 " WAIT; } out[i] = s + 1000;",
    "before loops": "if (id >= live) { out[i] = -1; return; } int s = id; for (int r = 0; r < count;"
                    " ++r) { for (int q = r; q < count; ++q) { t[id] = s; WAIT;"
                    " s += t[(id + q) % live]; WAIT; } } out[i] = s;",
    "before a uniform branch": "if (id >= live) return; int s = 1; if (count > 2) { t[id] = id;"
                               " WAIT; s = t[live - 1]; } else { t[id] = 2 * id; WAIT; WAIT;"
                               " s = t[0] + 7; } out[i] = s;",
    "before divergent code": "if (id >= live) return; int s = 0; for (int r = 0; r < id % 4; ++r)"
                             " s += r; if (id & 1) s *= 3; t[id] = s; WAIT;"
                             " for (int r = 0; r < id % 3; ++r) s += t[r % live]; out[i] = s;",
    "after work": "if (id >= live) { int s = 0; for (int r = 0; r < id; ++r) s ^= r * count;"
                  " if (s & 1) s += 5; out[i] = s; return; } t[id] = id; WAIT;"
                  " out[i] = t[(id + 1) % live];",
    "a loop whose count others write": "t[id] = 0; if (id == 0) t[1] = count; WAIT;"
                                       " const int rounds = t[1]; WAIT; if (id >= live) return;"
                                       " int s = id; for (int r = 0; r < rounds; ++r) { t[id] = s;"
                                       " WAIT; s += t[0]; WAIT; } out[i] = s;",
}  # fmt: skip


def library(text, device):
    try:
        return mtl.library(text, device=device)
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"{device}: {error}")


@pytest.mark.parametrize("name", BODIES)
def test_others_reach_their_barriers(name):
    text = KERNEL % BODIES[name]
    here, there = library(text, "opencl").k, library(text, "cpu").k
    for size in (32, 48, 96):
        for live in (1, 16, 33, size - 2):
            for count in (1, 3):
                results = []
                for kernel in (there, here):
                    out = np.full(2 * size, -99, np.int32)
                    with mtl.config.scope(strict_barriers=False):
                        kernel(out, min(live, size), count, mtl.threadgroup_memory(4 * size),
                               threads=2 * size, group_size=size)  # fmt: skip
                    results.append(out)
                assert (results[0] == results[1]).all(), (size, live, count)


def test_threads_of_failed_assertions_reach_barriers():
    text = KERNEL % (
        "t[id] = id; assert(id < live); WAIT; assert(id < live + 1); WAIT; out[i] = t[0] + 1;"
    )
    kernel = library(text, "opencl").k
    out = np.zeros(64, np.int32)
    with pytest.raises(mtl.KernelFault):
        kernel(out, 32, 1, mtl.threadgroup_memory(256), threads=64, group_size=64)
    assert (out[:32] == 1).all()
    assert not out[32:].any()


class Returning(Generator):
    """Writes kernels whose threads return between barriers.

    Whole simdgroups do if the kernels have simdgroup functions, to which returned lanes would give
    values that Metal leaves open.
    """

    def __init__(self, seed, lanes):
        super().__init__(seed, waits=True)
        self._lanes = lanes

    def kernel(self, name):
        barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        clear = (
            "for (int k = lid; k < 1024; k += size) shared[k] = 0;\n"
            f"for (int k = lid; k < 16; k += size) cells[k / 8][k % 8] = {{}};\n{barrier}"
        )
        return super().kernel(name).replace("  int i =", f"{clear}  int i =", 1)

    def _statement(self, depth, top, meet):
        if top and self._random.random() < 0.4:
            leave = f"if ({self._leaves()}) {{ {self._assignment()} return; }}\n"
            if self._random.random() < 0.5:
                return leave
            barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            return (
                f"for (int r = 0; r < (u & 3) + 1; ++r) {{\nshared[lid] = b + r;\n{barrier}"
                f"{leave}a += shared[(int(lid) + 1) % size];\n{barrier}}}\n"
            )
        return super()._statement(depth, top, meet)

    def _leaves(self):
        if self._lanes:
            return f"({self._condition()}) && ({self._int(1)} & 3) == 1"
        return f"(int(lid) / 32 + u + {self._random.randint(0, 4)}) % 4 == 0"

    def _exchange(self, top):
        while "simd" in (text := super()._exchange(top)) or "quad" in text:
            if not self._lanes:
                break
            if not top:
                return self._assignment()
        return text


def check(seed, lanes):
    generator = Returning(seed, lanes)
    check_text(HEADER + "".join(generator.kernel(f"k{n}") for n in range(COUNT)), WAITING)


@pytest.mark.parametrize("lanes", [False, True], ids=["simdgroups", "lanes"])
def test_some_random_kernels_agree(lanes):
    check(1, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [False, True], ids=["simdgroups", "lanes"])
@pytest.mark.parametrize("seed", range(2, 40))
def test_random_kernels_agree(seed, lanes):
    check(seed, lanes)
