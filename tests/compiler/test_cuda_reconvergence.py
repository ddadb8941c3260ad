"""The member masks of blocks after a divergent branch, against random walks of threads."""

import random

from hypothesis import given, reject
from hypothesis import strategies as st
from test_spmd_control_flow import GRAPHS, function_of

from metalloid.backends.cuda.compile.reconvergence import BranchEdge, LoopIteration, find_members
from metalloid.compiler.analysis.divergence import analyse
from metalloid.compiler.analysis.shapes import VARYING
from metalloid.compiler.ir.cfg import EXIT
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.loop_simplify import simplify_loops

_LONGEST = 200  # blocks of a walk


def members_of(graph):
    """The canonical graph and the members of its blocks, where every condition is varying."""
    parsed = function_of(graph)
    try:
        canonical = simplify_loops(parsed)
        divergence = analyse(parsed, canonical, 32, {"%c": VARYING}, all_masked=False)
        return canonical, find_members(divergence, function_of(graph).blocks)
    except Unsupported:
        reject()


@given(GRAPHS, st.randoms(use_true_random=False))
def test_a_thread_that_takes_an_edge_reaches_its_block_once(graph, chance: random.Random):
    canonical, members = members_of(graph)
    for _ in range(20):
        walk, block = [], canonical.entry
        while block != EXIT and len(walk) < _LONGEST:
            walk.append(block)
            block = chance.choice(canonical.successors[block])
        walk.append(block)
        for here, known in members.items():
            edges = (
                (*known.entries, known.back_edge) if isinstance(known, LoopIteration) else (known,)
            )

            def is_edge(now, then, edges=edges):
                return any(
                    now == edge if isinstance(edge, str)
                    else now == edge.block and canonical.successors[now][not edge.is_taken] == then
                    for edge in edges
                )  # fmt: skip

            events = []
            for now, then in zip(walk, [*walk[1:], ""], strict=True):
                events += ["here"] * (now == here) + ["side"] * is_edge(now, then)
            assert events[::2] == ["side"] * len(events[::2])
            assert events[1::2] == ["here"] * len(events[1::2])
            if block == EXIT:  # a thread that took the edge was there
                assert len(events) % 2 == 0


def test_edges_of_branches_in_branches():
    #  0 -> 1 -> 2 -> 3 and 0 -> 3, with 4 between 1 and 2; block 0 has no label, so it is of no use
    _, members = members_of([[1], [2, 6], [3, 4], [5], [5], [6], []] + [[]] * 3)
    assert members == {
        "%2": BranchEdge("%1", True), "%3": BranchEdge("%2", True), "%4": BranchEdge("%2", False),
        "%5": BranchEdge("%1", True),
    }  # fmt: skip


def test_iterations_of_loops_that_threads_leave_one_by_one():
    #  0 -> 1 -> 2 -> 3, and from 2 back to itself
    _, members = members_of([[1], [2], [2, 3], []] + [[]] * 6)
    back_edge = BranchEdge("%2", True)
    assert members == {"%2": LoopIteration("%2", ("%1",), back_edge), "%2.latch": back_edge}
    # A thread that continues early does not vote where others leave, but all do in some iteration.
    _, members = members_of([[2], [2, 3], [5], [], [], [6], [2, 0]] + [[]] * 3)
    assert "%2" not in members
    # Two exits: a thread that takes one does not vote at the other.
    _, members = members_of([[1], [2], [3, 4], [2, 4], []] + [[]] * 5)
    assert members == {}
    # One loop directly after another: threads reach it in different iterations of the first.
    _, members = members_of([[1], [2], [2, 3], [3, 4], []] + [[]] * 5)
    assert members.keys() == {"%2", "%2.latch"}
