"""Which functions do the work of several rows, and what rows share."""

from collections import Counter

import pytest
import spmd_texts

from metalloid.compiler.transforms.coarsen import coarsen

PARAMETERS = "ptr %p, ptr %q, i32 %x, i32 %y, i32 %n, i32 %index"
LOOP = """
    entry: {guard}
    loop: %k = phi i32 [ 0, %entry ], [ %next, %loop ]; %s = phi float [ 0.0, %entry ], [ %sum, %loop ]; \
        %row = mul i32 %y, %n; %i = add i32 %row, %k; %at = getelementptr float, ptr %p, i32 %i; \
        %a = load float, ptr %at; %j = add i32 %k, %x; %of = getelementptr float, ptr %q, i32 %j; \
        %b = load float, ptr %of; %sum = call float @llvm.fma.f32(float %a, float %b, float %s); \
        {more}%next = add i32 %k, 1; %on = icmp ult i32 %next, {until}; br i1 %on, label %loop, label %end
    end: %l = add i32 %y, %x; %to = getelementptr float, ptr %q, i32 %l; store float %sum, ptr %to; ret void
    out: ret void
"""


#: An addition to a copy of a buffer.
SUM = '%old = atomicrmw fadd ptr {} syncscope("singlethread") monotonic; '


def coarse(guard="br label %loop", more="", until="%n", max_carried=8):
    text = LOOP.format(guard=guard, more=more, until=until)
    function = spmd_texts.function(text, PARAMETERS)
    rows = coarsen(function, along={"%y"}, across={"%x"}, index="%index", max_carried=max_carried)
    return rows, function


def count(function, blocks=None):
    chosen = blocks or function.blocks
    return Counter(one.op for name in chosen for one in function.blocks[name].instructions())


def test_each_row_has_its_own_sum_and_one_load_serves_all():
    rows, function = coarse()
    assert rows == 8
    ops = count(function)
    assert ops["load"] == 8 + 1
    assert ops["phi"] == 8 + 1
    assert ops["call"] == ops["store"] == 8
    assert "%mtl.sequential" not in function.blocks


def test_sums_of_rows():
    rows, function = coarse(more=SUM.format("%at, float %b") + SUM.format("%of, float %a"))
    assert rows == 4
    assert count(function)["atomicrmw"] == 2 * 4
    # Nothing else is carried from iteration to iteration.
    alone = LOOP.replace("%s = phi float [ 0.0, %entry ], [ %sum, %loop ]; ", "").replace(
        "%s)", "%a)"
    )
    sums = SUM.format("%at, float %b")
    text = alone.format(guard="br label %loop", more=sums, until="%n").replace(
        "%sum, ptr", "0.0, ptr"
    )
    function = spmd_texts.function(text, PARAMETERS)
    assert coarsen(function, {"%y"}, {"%x"}, "%index", max_carried=8) == 4


def test_as_many_rows_as_registers_allow():
    more = "%t = phi float [ 1.0, %entry ], [ %product, %loop ]; "
    text = LOOP.format(guard="br label %loop", more="%product = fmul float %t, %a; ", until="%n")
    function = spmd_texts.function(text.replace("%row = mul", more + "%row = mul"), PARAMETERS)
    # One of the two is no vector: all lanes of a row have the same product.
    assert coarsen(function, {"%y"}, {"%x"}, "%index", max_carried=8) == 8
    assert coarse(max_carried=4)[0] == 4
    assert coarse(max_carried=1)[0] == 1


def test_divergent_rows_are_run_one_by_one():
    guard = "%c = icmp ult i32 %y, %n; br i1 %c, label %loop, label %out"
    rows, function = coarse(guard)
    assert rows == 8
    entry = function.blocks["%entry"]
    assert entry.end.labels == ["%loop", "%entry.none"]
    assert function.blocks["%entry.none"].end.labels == ["%mtl.sequential", "%out"]
    separate = [name for name in function.blocks if name.endswith(".sequential")]
    assert count(function, separate)["load"] == 2
    assert count(function, separate)["ret"] == 0  # but on to the next row
    assert function.blocks["%mtl.next"].end.labels == ["%mtl.sequential", "%mtl.end"]


@pytest.mark.parametrize(
    "given",
    [
        {"until": "%y"},
        {"more": "%old = atomicrmw add ptr %p, i32 1 monotonic; "},
        {"more": "%old = atomicrmw fadd ptr %at, float %b monotonic; "},
        {"more": SUM.format("%of, float %b")},  # of each row the same, but once for each
        {"more": "%z = add i32 %index, 1; "},
        {"more": "call void @__msl_threadgroup_barrier(i32 0); "},
        {"guard": "store float 0.0, ptr %q; %c = icmp ult i32 %y, %n; "
                  "br i1 %c, label %loop, label %out"},
    ],
    ids=["loops of their own", "atomic", "atomic of a row", "sum of all rows", "the index", "barrier", "parting behind a store"],
)  # fmt: skip
def test_what_is_left_as_it_is(given):
    rows, function = coarse(**given)
    assert rows == 1
    assert count(function)["load"] == 2
