"""The order in which waiting calls are numbered, and what it is for."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.compile.convergence_points import (
    loop_contiguous_order,
    number_convergence_points,
)

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


def test_blocks_after_a_loop_follow_all_of_its_blocks():
    graph = {
        "entry": ["outer"], "outer": ["inner", "exit"], "inner": ["body", "after"],
        "body": ["inner"], "after": ["outer"], "exit": [],
    }  # fmt: skip
    order = loop_contiguous_order(graph, set(graph), "entry")
    assert order.nodes == ["entry", "outer", "inner", "body", "after", "exit"]
    assert order.loops == {"outer": {"outer", "inner", "body", "after"}, "inner": {"inner", "body"}}


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
@example([(0, 3), (1, 2), (2, 3), (3, 2)])  # a loop with an edge from an unreachable node
def test_every_reachable_node_comes_once_and_after_one_of_its_predecessors(pairs):
    graph = {str(n): [str(b) for a, b in pairs if a == n] for n in range(13)}
    order = loop_contiguous_order(graph, set(graph), "0").nodes
    reachable, todo = set(), ["0"]
    while todo:
        node = todo.pop()
        if node not in reachable:
            reachable.add(node)
            todo += graph[node]
    assert set(order) == reachable
    assert len(order) == len(reachable)
    for position, node in enumerate(order[1:], 1):
        assert any(node in graph[before] for before in order[:position])


def test_only_calls_that_wait_are_numbered():
    ir = """define void @mtl_kernel(ptr %launch, i1 %c) {
entry:
  %lane = tail call i32 @__msl_simd_lane()
  br label %loop
loop:                                             ; preds = %loop, %entry
  %a = tail call float @__msl_simd_sum_f32(float 1.0)
  br i1 %c, label %loop, label %exit
exit:
  tail call void @__msl_threadgroup_barrier(i32 0)
  ret void
}
"""
    lines = number_convergence_points(ir, "mtl_kernel").splitlines()
    assert [line.strip() for line in lines[4:18]] == [
        "loop:",
        "%mtl.iteration = phi i32 [ 0, %entry ], [ %mtl.iteration.next, %loop ]",
        "%mtl.iteration.next = add i32 %mtl.iteration, 1",
        "call void @__msl_site(i32 1)",
        "call void @__msl_iteration(i32 1, i32 %mtl.iteration)",
        "%a = tail call float @__msl_simd_sum_f32(float 1.0)",
        "br i1 %c, label %loop, label %exit",
        "exit:",
        "call void @__msl_site(i32 2)",
        "tail call void @__msl_threadgroup_barrier(i32 0)",
        "ret void",
        "}",
        "",
        "declare void @__msl_site(i32)",
    ]
    assert number_convergence_points(ir, "another") == ir


def test_a_kernel_that_calls_a_waiting_function_is_left_alone():
    ir = """define void @mtl_kernel(ptr %launch) {
  call void @deep(i32 3)
  call void @__msl_threadgroup_barrier(i32 0)
  ret void
}
define void @deep(i32 %n) {
  call void @__msl_threadgroup_barrier(i32 0)
  ret void
}
"""
    assert number_convergence_points(ir, "mtl_kernel") == ir
    assert number_convergence_points(ir.replace("call void @deep(i32 3)", ""), "mtl_kernel") != ir


NESTED = """
kernel void nested(device const uint* trips, device uint* inner_sums, device uint* outer_sums,
                   uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    uint inner = 0, outer = 0;
    for (uint a = 0; a < 4; a++) {
        for (uint b = 0; b < trips[i]; b++)
            inner += simd_sum(1u);
        outer += simd_sum(1u);
    }
    inner_sums[i] = inner;
    outer_sums[i] = outer;
}
kernel void arms(device uint* x, uint i [[thread_position_in_grid]]) {
    if (x[i] & 1) x[i] = simd_sum(1u);
    else x[i] = simd_sum(1u);
}
kernel void deserted(device uint* x, uint i [[thread_position_in_grid]]) {
    if (x[i] & 1) { threadgroup_barrier(mem_flags::mem_none); }
    else { threadgroup_barrier(mem_flags::mem_none); }
}
"""


def test_lanes_reconverge_after_a_loop_they_left_one_by_one(rng):
    trips = rng.integers(0, 6, 64, dtype=np.uint32)
    inner, outer = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    mtl.library(HEADER + NESTED).nested(trips, inner, outer, threads=64, group_size=64)
    for group in (slice(0, 32), slice(32, 64)):
        active = [(trips[group] > b).sum() for b in range(6)]
        expected = [4 * sum(active[: int(t)]) for t in trips[group]]
        assert inner[group].tolist() == expected
        assert (outer[group] == 4 * 32).all()


def test_equal_calls_in_two_arms_stay_two_calls():
    x = np.arange(32, dtype=np.uint32) % 3
    odd = x & 1 == 1
    expected = np.where(odd, odd.sum(), (~odd).sum())
    mtl.library(HEADER + NESTED).arms(x, threads=32)
    assert (x == expected).all()
