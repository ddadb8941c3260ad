"""The vector form of checked kernels: it leaves no defect unseen, and lets correct kernels pass."""

import numpy as np
import pytest
from test_random_traces import ELEMENTS, GROUP, GROUPS, SOURCE, STEPS, races, random_program

import metalloid as mtl
from metalloid.backends.cpu.runtime import fast_checks

pytestmark = pytest.mark.needs("the CPU")

#: What a thread does, and whether that is a defect; None if the vector form is in doubt only. x has
#: 4 floats for each thread of 2 groups of 64.
CASES = [
    ("x[i] = 1;", False),
    ("x[4 * i + 3] = x[4 * i];", False),
    ("((device float4*)x)[i] = 1;", False),
    ("x[511 - 2 * i] = x[510 - 2 * i];", False),
    ("x[(i * 5) % 128] = 1;", False),  # a scatter
    ("x[(i * 6) % 128] = i;", True),
    ("x[i] = x[i + 1];", True),
    ("if (l < 31) x[i] = x[i + 1];", True),
    ("if (l < 31) { x[i + 128] = x[g * 64 + l] + x[g * 64 + l + 1]; x[g * 64 + l] = 3; }", True),
    ("x[i + 128] = x[g * 64 + l % 32]; threadgroup_barrier(LOCAL); if (l < 32) x[g * 64 + l] = 3;", True),
    ("x[i + 128] = x[g * 64 + l % 32]; threadgroup_barrier(DEVICE); x[i + 256] = x[g * 64 + l % 32];"
     "threadgroup_barrier(LOCAL); if (l < 32) x[g * 64 + l] = 3;", True),
    ("float v = x[g * 64 + l] + x[g * 64 + l + 1]; simdgroup_barrier(DEVICE);"
     "v += x[g * 64 + l] + x[g * 64 + l + 1]; x[i + 256] = v; if (l > 8 && l < 24) x[g * 64 + l] = 3;",
     True),
    ("uint a = g * 64 + l % 32; x[i + 256] = x[a] + x[a + 1]; threadgroup_barrier(LOCAL);"
     "simdgroup_barrier(DEVICE); if (l > 8 && l < 24) x[g * 64 + l] = 3;", True),
    ("if (l < 32) x[i + 128] = x[g * 64 + l]; if (l < 24) x[i + 256] = x[g * 64 + l + 8];"
     "if (l > 7 && l < 32) x[g * 64 + l] = 3;", True),
    ("x[i] = x[i ^ 64];", True),  # of the other threadgroup
    ("x[i + 128] = x[3];", False),
    ("x[i + 128] = x[3]; if (i == 9) x[3] = 2;", True),
    ("if (i == 9) x[3] = 2; x[i + 128] = x[3];", True),
    ("if (l < 32) x[i + 128] = x[g]; if (l == 0) x[g] = 2;", True),
    ("if (l == 0) x[g] = x[g] + 1;", False),
    ("if (l == 9) x[g] = 2; threadgroup_barrier(DEVICE); x[i + 128] = x[g];", False),
    ("if (l == 9) x[g] = 2; threadgroup_barrier(LOCAL); x[i + 128] = x[g];", True),
    ("x[i + 128] = x[g]; threadgroup_barrier(DEVICE); if (l == 9) x[g] = 2;", False),
    ("x[i + 128] = x[0]; threadgroup_barrier(DEVICE); if (i == 9) x[0] = 2;", True),
    ("if (i == 0) x[0] = 2; threadgroup_barrier(DEVICE); x[i + 128] = x[0];", True),
    ("x[i] = l; simdgroup_barrier(DEVICE); x[i + 128] = x[i ^ 1];", False),
    ("x[i] = l; simdgroup_barrier(DEVICE); x[i + 128] = x[i ^ 32];", True),
    ("x[i] = l; simdgroup_barrier(LOCAL); x[i + 128] = x[i ^ 1];", True),
    ("x[i + 128] = x[i ^ 1]; x[i + 256] = x[i ^ 32]; simdgroup_barrier(DEVICE); x[i] = 1;", True),
    ("if (l == 0) x[g] = 2; simdgroup_barrier(DEVICE); if (l == 1 || l == 32) x[i + 128] = x[g];", True),
    ("if (l > 9) simdgroup_barrier(DEVICE);", None),  # not by all lanes
    ("tile[l] = i; threadgroup_barrier(LOCAL); x[i] = tile[63 - l];", False),
    ("tile[l] = i; threadgroup_barrier(DEVICE); x[i] = tile[63 - l];", True),
    ("tile[l] = i; threadgroup_barrier(LOCAL); x[i] = tile[l % 32] + tile[32 + l % 32];"
     "simdgroup_barrier(LOCAL); if (l < 32) tile[l] = 3;", True),
    ("tile[l] = i; threadgroup_barrier(LOCAL); if (l < 32) { x[i] = tile[l] + tile[l ^ 1];"
     "x[i] += tile[l]; simdgroup_barrier(LOCAL); x[i] += tile[l]; } if (l > 31) tile[l] = 3;", False),
    ("tile[l] = i; threadgroup_barrier(LOCAL); x[i] = tile[63 - l]; tile[l] = 0;", True),
    ("if (l < 9) tile[l] = i; threadgroup_barrier(LOCAL); x[i] = tile[l];", True),  # no value
    ("if (g == 0) tile[l] = i; x[i] = tile[l];", True),  # a value of another threadgroup
    ("x[i] = z[i] + z[i ^ 1];", False),
    ("x[i] = z[i ^ 1]; ((device float*)z)[i] = 2;", True),
    ("x[i] = simd_shuffle_xor(float(l), 3);", False),
    ("if (l != 40) x[i] = simd_shuffle_xor(float(l), 3);", True),
    ("if (l > 40) x[i] = simd_broadcast_first(float(l));", False),
    ("x[i] = int(1e9f + l);", False),
    ("x[i] = int(l == 77 % 64 ? 3e9f : 1.0f);", True),
    ("float s = 2; if (l % 2) s = l; x[i] = s;", False),
    ("float s; if (l % 2) s = l; x[i] = s;", True),
    ("float s[3]; s[l % 2] = l; x[i] = s[which % 2];", True),
    ("x[i] = uchar(l * 4.05f);", False),
    ("x[i] = uchar(l * 4.07f);", True),
    ("x[i] = 3u << l / 2;", False),
    ("x[i] = 3u << (l + 1) / 2;", True),
    ("x[i] = (ulong2(5) >> ulong(l)).y;", False),
    ("x[i] = (ushort2(5) >> ushort(l / 3)).y;", True),
    ("atomic_fetch_add_explicit(count, 1, memory_order_relaxed);", False),
    ("atomic_fetch_add_explicit(count, 1, memory_order_relaxed); if (i == 3) x[i] = ((device uint*)count)[0];", True),
    ("atomic_fetch_add_explicit(count, 1, memory_order_relaxed); if (i == 3) ((device uint*)count)[0] = 1;", True),
    ("float4 v = *(device float4*)(x + 4 * (i / 2)); tile[l] = v.x + v.w;", False),
    ("float4 v = *(device float4*)(x + 4 * (i / 2) + min(which, 1)); tile[l] = v.x + v.w;", True),
    ("float4 v = float4(*(device packed_float4*)(x + i + min(which, 1))); tile[l] = v.x + v.w;", False),
]  # fmt: skip


def kernel_of(cases):
    lines = "\n".join(f"    case {k}: {{ {text} break; }}" for k, (text, _) in enumerate(cases))
    return f"""
#include <metal_stdlib>
using namespace metal;
#define DEVICE mem_flags::mem_device
#define LOCAL mem_flags::mem_threadgroup
kernel void run(device float* x, device atomic_uint* count, device const float* z, constant int& which,
                uint l [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]],
                uint g [[threadgroup_position_in_grid]]) {{
    threadgroup float tile[64];
    switch (which) {{
{lines}
    }}
}}"""


@pytest.fixture(scope="module")
def verdicts():
    """For each launch: whether the vector form has checked it alone, without an alarm."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        run = fast_checks.FastChecks.run

        def noted(self, *launch):
            seconds = run(self, *launch)
            assert self._is_usable  # else another engine has run
            seen.append(seconds is not None)
            return seconds

        patch.setattr(fast_checks, "MANY_THREADS", 0)
        patch.setattr(fast_checks, "_MAX_FALSE_ALARMS", 10**9)
        patch.setattr(fast_checks.FastChecks, "run", noted)
        yield seen


@pytest.fixture(scope="module")
def cases():
    return mtl.library(kernel_of(CASES), device="cpu", check=True).run


@pytest.mark.parametrize("which", range(len(CASES)))
def test_alarm_where_there_is_a_defect(cases, verdicts, which):
    x, count, z = np.full(512, 7, np.float32), np.zeros(1, np.uint32), np.zeros(128, np.float32)
    with mtl.checking(raises=False) as findings:
        cases(x, count, z, which, threads=128, group_size=64)
    is_defect = CASES[which][1]
    assert verdicts.pop() == (is_defect is False)
    assert bool(findings) == bool(is_defect)


def test_memory_is_restored_for_the_exact_engine(verdicts):
    lib = mtl.library(
        """kernel void next(device float* x, device float* y, uint i [[thread_position_in_grid]]) {
            x[i] += 1;
            y[0] = 2;
        }""",
        device="cpu",
        check=True,
    )
    x, y = np.arange(5000, dtype=np.float32), np.zeros(1, np.float32)
    lib.next(x, y, threads=5000)  # all write the same: an alarm, and no finding
    assert not verdicts.pop()
    assert (x == np.arange(5000) + 1).all()


def check(kernel, verdicts, seed):
    """Whether a random program has races; if it has, there must be an alarm."""
    operations, barriers = random_program(np.random.default_rng(seed))
    expected = set(races(operations, barriers))
    data, out = np.zeros(ELEMENTS, np.int32), np.zeros(GROUP * GROUPS, np.int32)
    with mtl.checking(raises=False):
        kernel(data, operations, barriers, out, STEPS, threads=GROUP * GROUPS, group_size=GROUP)
    is_clean = verdicts.pop()
    assert not (expected and is_clean), seed
    return bool(expected), is_clean


@pytest.mark.slow
def test_random_programs(verdicts):
    kernel = mtl.library(SOURCE, device="cpu", check=True).run
    outcomes = [check(kernel, verdicts, seed) for seed in range(4000)]
    # Few correct programs raise alarms: those that read atomically and plainly do.
    assert sum(is_clean for _, is_clean in outcomes) > 0.8 * sum(not racy for racy, _ in outcomes)
