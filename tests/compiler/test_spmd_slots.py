"""Offsets of slots: a loop variable's next value shares the slot of a dead one."""

from types import SimpleNamespace

import pytest
from spmd_texts import function

from metalloid.compiler.vectorize.emitted_code import EmittedBlock, Return, SlotAccess
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.workgroup.frame_layout import lay_out_slots, shared_slots

#: A loop with a sum, in which it waits at a barrier, and what the sum becomes.
LOOP = function(
    """
    entry: br label %loop
    loop: %sum = phi float [ 0.0, %entry ], [ %next, %loop ]; %next = fadd float %sum, 1.0; br i1 %c, label %loop, label %out
    out: ret void
    """
)  # fmt: skip
SUM, NEXT = (Slot(SlotKind.VECTOR, name) for name in ("sum", "next"))
SLOTS = {SUM: "<8 x float>", NEXT: "<8 x float>"}


def load(slot):
    return SlotAccess(slot, is_store=False)


def store(slot):
    return SlotAccess(slot, is_store=True)


def block(label, accesses=(), to=(), region=None, lanes=255, escaping=()):
    returned = None if region is None else Return(region, lanes)
    return EmittedBlock(label, [], list(accesses), set(escaping), list(to), returned)


def blocks(middle, last, escaping=(), lanes=255):
    """Three regions: the sum is stored; `middle`; and `last`, from which it goes back or out."""
    return [
        block("b0", [store(SUM)], ["b1"]),
        block("b1", region=1),
        block("behind1", middle, region=2, lanes=lanes),
        block("behind2", last, ["b2", "b3"], escaping=escaping),
        block("b2", [load(NEXT), store(SUM)], ["b1"]),
        block("b3", region=0),
    ]


STARTS = ["b0", "behind1", "behind2"]
ADDS = [load(SUM), store(NEXT)]


def test_a_sum_stays_where_it_is():
    assert shared_slots(LOOP, SLOTS, blocks(ADDS, []), STARTS) == {NEXT: SUM}


@pytest.mark.parametrize(
    ("middle", "last", "escaping"),
    [
        (ADDS, [load(SUM)], ()),  # what it was is read after the next barrier
        ([*ADDS, load(SUM)], [], ()),  # or at once
        (ADDS, [], [NEXT]),  # a function has its address
    ],
)
def test_both_are_needed(middle, last, escaping):
    assert shared_slots(LOOP, SLOTS, blocks(middle, last, escaping), STARTS) == {}


def test_the_region_is_known_where_lanes_are_counted_at_run_time():
    assert shared_slots(LOOP, SLOTS, blocks(ADDS, [load(SUM)], lanes=None), STARTS) == {}


def test_other_types_share_no_slot():
    slots = {**SLOTS, NEXT: "<8 x half>"}
    assert shared_slots(LOOP, slots, blocks(ADDS, []), STARTS) == {}


def test_a_shared_slot_takes_no_memory():
    emitted = blocks(ADDS, [load(SUM)]), blocks(ADDS, [])
    separate, shared = (
        lay_out_slots(LOOP, SimpleNamespace(slots=SLOTS, blocks=each), set(SLOTS), (), STARTS)
        for each in emitted
    )
    assert (separate[1], shared[1]) == (64 + 2 * 64, 64 + 64)
    assert shared[0][-1] == '  %"v.next" = getelementptr i8, ptr %"v.sum", i64 0'
