"""Races of public kernels, reduced to the part that matters: reported before their fix only.

A marked line is the fix. The lines of the two accesses end with ``// first`` and ``// second``.
"""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
IDS = """uint thread_index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint row [[threadgroup_position_in_grid]]"""

#: ml-explore/mlx#2340, layer_norm.metal before f5299f72c: the second sum overwrites the partial sums
#: that simdgroups still read for the first one.
LAYER_NORM = f"""
inline float sum_of_row(float x, threadgroup float* partial, uint lane, uint simdgroup) {{
    x = simd_sum(x);
    // FIX
    if (lane == 0)
        for (int k = 0; k < 1; k++)  // LLVM would move the store out of the loop, to no line
            partial[simdgroup + k] = x;  // second
    {BARRIER}
    return simd_sum(partial[lane]);  // first
}}
kernel void run(device const float* x, device float* out, {IDS}) {{
    threadgroup float partial[32];
    if (simdgroup == 0) partial[lane] = 0;
    {BARRIER}
    float v = x[row * 128 + thread_index];
    v -= sum_of_row(v, partial, lane, simdgroup) / 128;
    float variance = sum_of_row(v * v, partial, lane, simdgroup) / 128;
    out[row * 128 + thread_index] = v * rsqrt(variance + 1e-5f);
}}
"""

#: ml-explore/mlx#2591, scan.h before 6ccfa603c: the next block's sums of simdgroups are stored while
#: other simdgroups still add those of this block.
CONTIGUOUS_SCAN = f"""
kernel void run(device const float* x, device float* out, {IDS}) {{
    threadgroup float sums[32];
    if (simdgroup == 0) sums[lane] = 0;
    {BARRIER}
    float prefix = 0;
    for (uint block = 0; block < 2; block++) {{
        float v = x[row * 128 + (block * 64 + thread_index) % 128];
        float before = simd_prefix_exclusive_sum(v);
        // FIX
        if (lane == 31) sums[simdgroup] = before + v;  // second
        {BARRIER}
        if (simdgroup == 0) sums[lane] = simd_prefix_exclusive_sum(sums[lane]);
        {BARRIER}
        v += prefix + before + sums[simdgroup];  // first
        out[row * 256 + block * 128 + thread_index] = v;
        prefix = simd_broadcast(v, 31);
    }}
}}
"""

#: ml-explore/mlx-lm#1700, the fused KL divergence at d78bf58e: sums are stored where simdgroups still
#: read maxima.
KL_DIVERGENCE = f"""
kernel void run(device const float* x, device float* out, {IDS}) {{
    threadgroup float shared[32];
    if (simdgroup == 0) shared[lane] = -INFINITY;
    {BARRIER}
    float v = x[row * 128 + thread_index];
    float largest = simd_max(v);
    if (lane == 0) shared[simdgroup] = largest;
    {BARRIER}
    largest = simd_max(shared[lane]);  // first
    // FIX
    float sum = simd_sum(exp(v - largest));
    if (lane == 0) shared[simdgroup] = sum;  // second
    {BARRIER}
    if (simdgroup == 0) {{ float all = simd_sum(lane < 4 ? shared[lane] : 0); if (lane == 0) out[row] = largest + log(all); }}
}}
"""

#: ml-explore/mlx#2042, softmax and logsumexp before c41f7565e: simdgroups store their maxima where the
#: first one may still store the initial values.
SOFTMAX = f"""
kernel void run(device const float* x, device float* out, {IDS}) {{
    threadgroup float maxima[32];
    if (simdgroup == 0) maxima[lane] = -INFINITY;  // first
    // FIX
    float v = x[row * 128 + thread_index];
    float largest = simd_max(v);
    if (lane == 0) maxima[simdgroup] = largest;  // second
    {BARRIER}
    largest = simd_max(maxima[lane]);
    out[row * 128 + thread_index] = exp(v - largest);
}}
"""

#: ml-explore/mlx#1188, scan before 496315fe1: the total of a block is shared through the sums that
#: other simdgroups still add.
SHARED_PREFIX = f"""
kernel void run(device const float* x, device float* out, {IDS}) {{
    threadgroup float sums[32];
    if (simdgroup == 0) sums[lane] = 0;
    {BARRIER}
    float v = x[row * 128 + thread_index], before = simd_prefix_exclusive_sum(v);
    if (lane == 31) sums[simdgroup] = before + v;
    {BARRIER}
    if (simdgroup == 0) sums[lane] = simd_prefix_exclusive_sum(sums[lane]);
    {BARRIER}
    v += before + sums[simdgroup];  // first
    // FIX
    if (thread_index == 127) sums[0] = v;  // second
    {BARRIER}
    out[row * 128 + thread_index] = v / sums[0];
}}
"""
CASES = {
    "layer norm": LAYER_NORM,
    "contiguous scan": CONTIGUOUS_SCAN,
    "KL divergence": KL_DIVERGENCE,
    "softmax": SOFTMAX,
    "shared prefix": SHARED_PREFIX,
}


def lines_of(source, word):
    return [n for n, line in enumerate(source.splitlines(), 1) if line.endswith(f"// {word}")]


def findings_of(source):
    kernel = mtl.library(source, device="cpu", check=True).run
    x, out = np.arange(256, dtype=np.float32), np.zeros(1024, np.float32)
    with mtl.checking(raises=False) as findings:
        kernel(x, out, threads=256, group_size=128)
    return findings


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_race_is_reported_until_it_is_fixed(name):
    source = HEAD + CASES[name]
    [finding] = findings_of(source)
    assert finding.kind == "race"
    lines = [access.line for access in finding.accesses]
    assert sorted(lines) == sorted(lines_of(source, "first") + lines_of(source, "second"))
    assert "threadgroup_barrier(mem_flags::mem_threadgroup)" in finding.hint
    assert findings_of(source.replace("// FIX", BARRIER)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_known_races_change_results(name):
    x = np.random.default_rng(1).normal(size=256).astype(np.float32)

    def explored(source):
        kernel = mtl.library(source, device="cpu").run

        def launch():
            out = np.zeros(1024, np.float32)
            kernel(x, out, threads=256, group_size=128)
            return out

        return mtl.explore(launch, seeds=40)

    # The scan's accesses have a simdgroup function between them, where lanes wait for each other here.
    assert explored(HEAD + CASES[name]).differs == (name != "contiguous scan")
    assert not explored(HEAD + CASES[name].replace("// FIX", BARRIER)).differs
