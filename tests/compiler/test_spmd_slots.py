"""Places of slots: what a variable of a loop becomes lies where it was, if nobody reads that any more."""

from types import SimpleNamespace

import pytest
from spmd_texts import function

from metalloid.compiler.vectorize.workgroup.frame_layout import places, shared_places

#: A loop with a sum, in which it waits at a barrier, and what the sum becomes.
LOOP = function(
    """
    entry: br label %loop
    loop: %sum = phi float [ 0.0, %entry ], [ %next, %loop ]; %next = fadd float %sum, 1.0; br i1 %c, label %loop, label %out
    out: ret void
    """
)  # fmt: skip
SLOTS = {'%"v.sum"': "<8 x float>", '%"v.next"': "<8 x float>"}


def load(name, slot):
    return f'  %{name} = load <8 x float>, ptr %"v.{slot}", align 64'


def store(name, slot):
    return f'  store <8 x float> %{name}, ptr %"v.{slot}", align 64'


def wait(region):
    return f"  ret i64 {region << 32 | 255}"


def lines(middle, last):
    """Three regions: the sum is stored; `middle`; and `last`, from which it goes back or out."""
    return [
        "b0:", store("zero", "sum"), "  br label %b1",
        "b1:", wait(1),
        "behind1:", *middle, wait(2),
        "behind2:", *last, "  br i1 %c, label %b2, label %b3",
        "b2:", load("again", "next"), store("again", "sum"), "  br label %b1",
        "b3:", "  ret i64 0",
    ]  # fmt: skip


STARTS = ["b0", "behind1", "behind2"]
ADDS = [load("s", "sum"), "  %n = fadd <8 x float> %s, %one", store("n", "next")]


def test_a_sum_stays_where_it_is():
    assert shared_places(LOOP, SLOTS, lines(ADDS, []), STARTS) == {'%"v.next"': '%"v.sum"'}


@pytest.mark.parametrize(
    ("middle", "last"),
    [
        (ADDS, [load("old", "sum")]),  # what it was is read behind the next barrier
        ([*ADDS, load("old", "sum")], []),  # or at once
        (ADDS, ['  call void @f(ptr %"v.next")']),  # nobody knows what that does
    ],
)
def test_both_are_needed(middle, last):
    assert shared_places(LOOP, SLOTS, lines(middle, last), STARTS) == {}


def test_where_lanes_may_be_missing_the_region_is_in_the_line_before():
    """``ret`` of lanes that are counted."""
    text = [
        line
        for each in lines(ADDS, [load("old", "sum")])
        for line in (
            ("  %r = or i64 %lanes, 8589934592", "  ret i64 %r") if each == wait(2) else (each,)
        )
    ]
    assert shared_places(LOOP, SLOTS, text, STARTS) == {}


def test_other_types_are_kept_apart():
    slots = {**SLOTS, '%"v.next"': "<8 x half>"}
    assert shared_places(LOOP, slots, lines(ADDS, []), STARTS) == {}


def test_a_shared_place_takes_no_room():
    texts = lines(ADDS, [load("old", "sum")]), lines(ADDS, [])
    apart, together = (
        places(LOOP, SimpleNamespace(slots=SLOTS, lines=text), set(SLOTS), (), STARTS)
        for text in texts
    )
    assert (apart[1], together[1]) == (64 + 2 * 64, 64 + 64)
    assert together[0][-1] == '  %"v.next" = getelementptr i8, ptr %"v.sum", i64 0'
