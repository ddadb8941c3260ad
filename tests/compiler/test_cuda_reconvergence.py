"""Who is in a block that a branch has parted from the rest: against threads that walk about."""

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


def sides_of(graph):
    """The canonical graph and the sides, where every condition differs from thread to thread."""
    made = function_of(graph)
    try:
        found = simplify_loops(made)
        divergence = analyse(made, found, 32, {"%c": VARYING}, all_masked=False)
        return found, find_members(divergence, function_of(graph).blocks)
    except Unsupported:
        reject()


@given(GRAPHS, st.randoms(use_true_random=False))
def test_who_takes_a_side_comes_to_its_blocks_once(graph, chance: random.Random):
    found, sides = sides_of(graph)
    for _ in range(20):
        walk, block = [], found.entry
        while block != EXIT and len(walk) < _LONGEST:
            walk.append(block)
            block = chance.choice(found.successors[block])
        walk.append(block)
        for here, known in sides.items():
            ways = (
                (*known.entries, known.back_edge) if isinstance(known, LoopIteration) else (known,)
            )

            def is_way(now, then, ways=ways):
                return any(
                    now == way if isinstance(way, str)
                    else now == way.block and found.successors[now][not way.is_taken] == then
                    for way in ways
                )  # fmt: skip

            events = []
            for now, then in zip(walk, [*walk[1:], ""], strict=True):
                events += ["here"] * (now == here) + ["side"] * is_way(now, then)
            assert events[::2] == ["side"] * len(events[::2])
            assert events[1::2] == ["here"] * len(events[1::2])
            if block == EXIT:  # who took the side was there
                assert len(events) % 2 == 0


def test_sides_of_branches_in_branches():
    #  0 -> 1 -> 2 -> 3 and 0 -> 3, with 4 between 1 and 2; block 0 has no label, so it is of no use
    _, sides = sides_of([[1], [2, 6], [3, 4], [5], [5], [6], []] + [[]] * 3)
    assert sides == {
        "%2": BranchEdge("%1", True), "%3": BranchEdge("%2", True), "%4": BranchEdge("%2", False),
        "%5": BranchEdge("%1", True),
    }  # fmt: skip


def test_rounds_of_loops_that_threads_leave_one_by_one():
    #  0 -> 1 -> 2 -> 3, and from 2 back to itself
    _, sides = sides_of([[1], [2], [2, 3], []] + [[]] * 6)
    again = BranchEdge("%2", True)
    assert sides == {"%2": LoopIteration("%2", ("%1",), again), "%2.latch": again}
    # Who goes on early does not vote where others leave, but all pass it in some round.
    _, sides = sides_of([[2], [2, 3], [5], [], [], [6], [2, 0]] + [[]] * 3)
    assert "%2" not in sides
    # Two ways out: who takes one does not vote at the other.
    _, sides = sides_of([[1], [2], [3, 4], [2, 4], []] + [[]] * 5)
    assert sides == {}
    # One loop directly behind another: they come there in different rounds of the first.
    _, sides = sides_of([[1], [2], [2, 3], [3, 4], []] + [[]] * 5)
    assert sides.keys() == {"%2", "%2.latch"}
