"""Where kernels for NVIDIA GPUs poll whether they shall end."""

import re

import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.cancellation_polls import (
    CANCEL_BYTES,
    CANCEL_SYMBOL,
    poll_loops,
)

ID = "uint i [[thread_position_in_grid]]"

#: Bodies of kernels: whether loops poll, and whether threads look at the flag when they begin.
BODIES = {
    "no loop": ("x[i] += 1;", False, False),
    "an unrolled loop": ("for (int k = 0; k < 4; k++) x[i] += k;", False, False),
    "a counted loop": ("int s = 0; for (int k = 0; k < n; k++) s = s * x[k] + k; x[i] = s;", False, True),
    "a counted loop that may end early":
        ("int k = 0; for (; k < n && x[k] != 7; k++) x[i + k] += k; x[0] = k;", False, True),
    "a counter that goes down": ("for (int k = n; k > 0; k -= 3) x[i] += x[i + k];", False, True),
    "a halving": ("for (uint s = n; s > 0; s >>= 1) { x[i] += x[i + s]; }", False, True),
    "nested counted loops":
        ("for (int k = 0; k < n; k++) { int s = 0; for (int l = 0; l < k; l++) s ^= s * x[l]; x[k + i] = s; }", False, True),
    "a counted loop of full warps":
        ("for (int k = i; k < n; k += 256) x[k] = simd_prefix_inclusive_sum(x[k]);", False, True),
    "a wait": ("while (atomic_load_explicit((device atomic_int*)x, memory_order_relaxed) == 0) {}", True, True),
    "a search": ("int k = i; while (x[k] != 7) k = x[k]; x[i] = k;", True, True),
    "a counter that may stand still":
        ("int k = 0; while (k < n) { if (x[k] > 3) k++; x[i] += 1; }", True, True),
    "a bound that moves": ("for (int k = 0; k < x[i]; k++) x[i] = x[i] * 3 ^ k;", True, True),
    "steps that may be zero": ("for (int k = 0; k < n; k += x[i + 1]) x[k] += 1;", True, True),
    "a condition that is not of each iteration":
        ("int k = 0; while (true) { k++; if (x[k] == 3) { if (k > n) break; } x[i] += 1; }", True, True),
    "endless in counted": (
        "for (int k = 0; k < n; k++) while (x[k] != 7) x[k] = x[x[k]];", True, True),
}  # fmt: skip


def ptx(body):
    text = f"#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device int* x, constant int& n, {ID}) {{ {body} }}"
    return mtl.library(text, target="cuda:sm_90").f.asm["ptx"]


@pytest.mark.parametrize("name", BODIES)
def test_loops_that_nothing_bounds_poll(name):
    body, polls, looks = BODIES[name]
    text = ptx(body)
    polls_of_loops = len(re.findall(r"^\$L__mtl_poll_\d+:", text, re.M))
    assert (polls_of_loops > 0) == polls  # LLVM may unroll the loop around one
    assert (f"%mtl_rd, {CANCEL_SYMBOL};" in text) == looks
    assert text.count(f".visible .global .align 128 .b8 {CANCEL_SYMBOL}[{CANCEL_BYTES}];") == looks


def test_kernels_need_not_be_cancellable():
    body = BODIES["a wait"][0]
    with mtl.config.scope(cancellable=False):
        assert CANCEL_SYMBOL not in ptx(body)
    assert CANCEL_SYMBOL in ptx(body)


def test_functions_that_stay_calls_poll():
    text = """
    int walk(device int* x, int k) __attribute__((noinline)) { while (x[k] != 7) k = x[k]; return k; }
    kernel void f(device int* x, uint i [[thread_position_in_grid]]) { x[i] = walk(x, i) + walk(x, i + 1); }
    """
    assert CANCEL_SYMBOL in mtl.library(text, target="cuda:sm_90").f.asm["ptx"]


def test_loops_of_two_latches_and_jump_tables():
    """Text that LLVM may write, shortened."""
    text = """.version 7.8
.target sm_90
.address_size 64

.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<4>;

	mov.b32 	%r1, 0;
$L__BB0_1:
	ld.global.b32 	%r2, [k_param_0];
	setp.eq.b32 	%p1, %r2, 1;
	@%p1 bra 	$L__BB0_1;
	$L_brx_0: .branchtargets
		$L__BB0_2,
		$L__BB0_3;
	brx.idx 	%r2, $L_brx_0;
$L__BB0_2:
	add.s32 	%r1, %r1, 1;
	bra.uni 	$L__BB0_1;
$L__BB0_3:
	ret;
}
"""
    polled = poll_loops(text)
    assert polled.count("$L__mtl_poll_") == 4  # two back edges: a branch and a label each
    rest = iter(polled.split("\n"))
    assert all(line in rest for line in text.split("\n"))  # as it was, but for what was added
