"""Canonical form, order of blocks, barriers, masks: what the passes promise each other."""

import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from spmd_texts import WIDTH, function

from metalloid.compiler.analysis.barriers import is_barrier
from metalloid.compiler.analysis.block_order import block_order
from metalloid.compiler.analysis.shapes import consecutive
from metalloid.compiler.analysis.simdgroup_functions import BARRIER
from metalloid.compiler.ir.cfg import EXIT, Graph
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import I1, VOID, Unsupported
from metalloid.compiler.transforms import loop_simplify as canonical_form
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.compiler.transforms.split_at_barriers import split_at_barriers
from metalloid.compiler.vectorize.pipeline import vectorize
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.spec import VectorSpec
from metalloid.compiler.vectorize.workgroup.live_across_barriers import LiveAcrossBarriers

GRAPHS = st.lists(st.lists(st.integers(0, 9), min_size=0, max_size=3), min_size=10, max_size=10)


def function_of(graph):
    """Blocks that end in a return, a branch or a switch."""
    blocks = {}
    for number, targets in enumerate(graph):
        # Nothing goes to the entry.
        labels = [f"%{t or 1}" for t in targets]
        condition = [Value(I1, "%c")] if len(labels) > 1 else []
        op = ("ret", "br", "br", "switch")[len(labels)]
        cases = (0, 1) if op == "switch" else ()
        end = Instruction(op, operands=condition, labels=labels, cases=cases)
        blocks[f"%{number}"] = Block(f"%{number}", end=end)
    return Function("f", VOID, [], "", blocks)


def canonical(graph):
    parsed = function_of(graph)
    try:
        return parsed, simplify_loops(parsed)
    except Unsupported:
        reject()


@given(GRAPHS)
def test_canonical_form(graph):
    function, graph = canonical(graph)
    for name in graph.order:
        end = function.blocks[name].end
        assert end.op == ("ret" if name == EXIT else "br")
        assert len(end.labels) == len(set(end.labels)) <= 2
    for loop in graph.loops:
        assert graph.successors[loop.preheader] == [loop.header]
        assert graph.successors[loop.latch] == [loop.header]
        assert not function.blocks[loop.latch].body
        assert set(graph.predecessors[loop.header]) == {loop.preheader, loop.latch}


def test_a_function_of_many_loops_is_not_looked_at_for_each(monkeypatch):
    function = function_of([[1], *([number, number + 1] for number in range(1, 100)), []])
    count = []
    look = canonical_form.Graph
    monkeypatch.setattr(canonical_form, "Graph", lambda function: count.append(1) or look(function))
    assert len(simplify_loops(function).loops) == 99
    assert len(count) == 3


@given(GRAPHS)
def test_order(graph):
    _, graph = canonical(graph)
    order = block_order(graph)
    position = {name: number for number, name in enumerate(order)}
    assert sorted(order) == sorted(graph.order)
    latches = {loop.latch for loop in graph.loops}
    for name in order:
        for successor in graph.successors[name]:
            assert position[successor] > position[name] or name in latches
    for loop in graph.loops:
        positions = sorted(position[name] for name in loop.blocks)
        assert positions == list(range(positions[0], positions[0] + len(positions)))  # contiguous
        assert (position[loop.header], position[loop.latch]) == (positions[0], positions[-1])


def test_a_switch_becomes_comparisons_with_the_same_phis():
    parsed = function("""
        entry: switch i32 %u, label %other [ i32 1, label %one i32 5, label %one i32 9, label %other ]
        one: br label %other
        other: %r = phi i32 [ 4, %entry ], [ 4, %entry ], [ 8, %one ]; ret void
    """)
    simplify_loops(parsed)
    [phi] = parsed.blocks["%other"].phis
    came = dict(zip(phi.labels, (v.name for v in phi.operands), strict=True))
    assert came.pop("%one") == "8"
    assert set(came.values()) == {"4"}
    tests = [i for i in parsed.instructions() if i.op == "icmp"]
    assert sorted(i.operands[1].name for i in tests) == ["1", "5", "9"]


# ---- barriers

WAIT = f"call void {BARRIER}(i32 1)"


def test_a_barrier_ends_its_block():
    parsed = function(f"entry: {WAIT}; %a = add i32 %u, 1; {WAIT}; {WAIT}; ret void")
    assert split_at_barriers(parsed) == 3
    blocks = dict(parsed.blocks)
    assert not any(map(is_barrier, blocks.pop("%mtl.after3").body))
    assert all(is_barrier(b.body[-1]) and len(b.end.labels) == 1 for b in blocks.values())
    ops = [i.op for name in Graph(parsed).order for i in parsed.blocks[name].instructions()]
    assert [op for op in ops if op != "br"] == ["call", "add", "call", "call", "ret"]


def crossing(blocks, slots, straight=()):
    parsed = function(blocks)
    split_at_barriers(parsed)
    graph = simplify_loops(parsed)
    live = LiveAcrossBarriers(parsed, graph, block_order(graph), straight=set(straight))
    kinds = {slot: slot.split(".") for slot in slots}
    return {
        slot for slot, (kind, name) in kinds.items() if live.is_crossed(Slot(SlotKind(kind), name))
    }


def test_values_used_after_a_barrier_are_spilled():
    crossed = crossing(
        f"""
        entry: %a = add i32 %u, 1; br label %next
        next: %b = add i32 %a, 1; {WAIT}; %c1 = add i32 %b, 1; br label %end
        end: %d = add i32 %c1, 1; ret void
        """,
        ["s.a", "v.b", "s.c1"],
    )
    assert crossed == {"v.b"}


def test_a_constant_is_not_the_value_of_that_name():
    """As text, the constant 91 without its first character is the name of %1 without its sign."""
    crossed = crossing(
        f"entry: %1 = add i32 %u, 1; %a = add i32 %1, 1; {WAIT}; %b = add i32 %u, 91; ret void",
        ["s.1", "s.a"],
    )
    assert crossed == set()


def test_values_used_in_a_later_iteration_are_spilled():
    """A value from before a loop with a barrier, used before the barrier: in the next iteration."""
    crossed = crossing(
        f"""
        entry: %a = add i32 %u, 1; br label %head
        head: %i = phi i32 [ 0, %entry ], [ %n, %head ]; %b = add i32 %a, %i; {WAIT}; %n = add i32 %i, 1; %t = icmp ult i32 %n, %u; br i1 %t, label %head, label %end
        end: ret void
        """,
        ["s.a", "s.b"],
    )
    assert crossed == {"s.a"}


def test_variables_are_spilled_where_a_path_has_a_barrier():
    """Variables of a loop are written before each iteration, unless lanes leave one by one."""
    blocks = f"""
        entry: br i1 %c, label %head, label %end
        head: %i = phi i32 [ 0, %entry ], [ %n, %head ]; {WAIT}; %n = add i32 %i, 1; %t = icmp ult i32 %n, %x; br i1 %t, label %head, label %out
        out: %o = phi i32 [ %n, %head ]; br label %end
        end: %e = phi i32 [ 0, %entry ], [ %o, %out ]; ret void
    """
    variables = ["phi.i", "phi.o", "phi.e"]
    assert crossing(blocks, variables) == {"phi.o", "phi.e"}
    assert crossing(blocks, variables, [("%entry", "%end")]) == {"phi.o"}


# ---- masks


def vector_text(blocks):
    return vectorize(
        function(blocks), VectorSpec("lanes", WIDTH, 1, {1: consecutive(WIDTH)}, 1)
    ).text


BRANCH = """
    entry: br i1 {condition}, label %yes, label %no
    yes: {instruction}; br label %end
    no: br label %end
    end: ret void
"""


def vectorized_branch(instruction, condition):
    text = BRANCH.format(condition=condition, instruction=instruction)
    return vector_text(
        text.replace(
            "entry: br i1 %v2,",
            "entry: %v1 = mul i32 %x, %x; %v2 = icmp ult i32 %v1, %u; br i1 %v2,",
        )
    )


STORE_ROW = "%q = getelementptr i32, ptr %p, i32 %x; store i32 %x, ptr %q"


def test_a_uniform_branch_needs_no_masks():
    text = vectorized_branch(STORE_ROW, "%c")
    assert "mask" not in text
    assert "br i1 %c, " in text


def test_a_divergent_branch_is_none():
    """Its blocks follow each other; what they do to memory is masked."""
    text = vectorized_branch(STORE_ROW, "%v2")
    assert "llvm.masked.store" in text
    conditions = re.findall(r"br i1 (%\w+)", text)
    votes = dict(re.findall(r"(%\w+) = (icmp \w+ i8 .*)", text))
    assert conditions
    assert all(condition in votes for condition in conditions)  # "any lane?" and "all lanes?"


def test_votes_on_a_monotone_condition_test_the_first_and_the_last_lane():
    text = vector_text(
        BRANCH.format(condition="%w", instruction=STORE_ROW).replace(
            "entry:", "entry: %w = icmp ult i32 %x, %u;"
        )
    )
    scalars = dict(re.findall(r"(%\w+) = (icmp ult i32 .*)", text))
    last = re.search(rf"(%\w+) = add i32 %x, {WIDTH - 1}", text)[1]
    votes = {kind: name for name, kind in re.findall(r'store i1 (%\w+), ptr %"(\w+).yes"', text)}
    assert scalars[votes["any"]] == "icmp ult i32 %x, %u"
    assert scalars[votes["all"]] == f"icmp ult i32 {last}, %u"
    assert "icmp ne i8" not in text


@pytest.mark.parametrize(
    "instruction",
    ["%r = load i32, ptr %p", "store i32 %u, ptr %p", "%r = udiv i32 7, %u",
     "%r = atomicrmw add ptr %p, i32 1 monotonic"],
)  # fmt: skip
def test_scalar_code_never_runs_without_a_lane(instruction):
    text = vectorized_branch(instruction, "%v2")
    [line] = [
        n
        for n, t in enumerate(text.splitlines())
        if re.search(r"udiv i32|load i32, ptr %p|store i32 %u|atomicrmw", t)
    ]
    before = "\n".join(text.splitlines()[:line])
    test, active = re.findall(r"br i1 (%\w+), label %(b\d+\.active), label %b\d+\.skip", before)[-1]
    assert f"{active}:" in before
    assert f"{test} = icmp ne i8" in before


def test_a_divergent_loop_goes_on_while_any_lane_does():
    text = vector_text("""
        entry: br label %head
        head: %i = phi i32 [ 0, %entry ], [ %n, %head ]; %n = add i32 %i, 1; %t = icmp ult i32 %n, %x; br i1 %t, label %head, label %end
        end: %q = getelementptr i32, ptr %p, i32 %x; store i32 %i, ptr %q; ret void
    """)
    [condition] = re.findall(r"br i1 (%\w+), label %b\d+, label %b\d+\.done", text)
    assert f"{condition} = icmp ne i8" in text
    assert "phi i32" not in text  # slots instead
    assert "masked" not in text.split("store i32")[0].split(".done:")[0]
