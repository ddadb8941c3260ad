"""Divergence: which branches, blocks and loops lanes part in, and which values show it."""

import pytest
from spmd_texts import WIDTH, analysed, blocks_of

from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.types import I32, Unsupported


def shape(result, name, block=None):
    value = Value(I32, f"%{name}")
    return result.shape(value, f"%{block}" if block else result.home(value))


def diamond(condition):
    return analysed(f"""
        entry: br i1 %{condition}, label %yes, label %no
        yes: %a = add i32 %u, 1; br label %end
        no: br label %end
        end: %r = phi i32 [ %a, %yes ], [ 7, %no ]; %s = phi i32 [ %u, %yes ], [ %u, %no ]; ret void
    """)


def test_a_uniform_branch():
    divergence = diamond("c")
    assert not divergence.branches
    assert not divergence.masked
    assert shape(divergence, "r").is_uniform


def test_a_divergent_branch():
    divergence = diamond("v")
    assert blocks_of(divergence.branches) == {"entry"}
    assert blocks_of(divergence.masked) == {"yes", "no"}  # all lanes meet again at the end
    assert shape(divergence, "r").is_varying  # though both of its values are uniform
    assert shape(divergence, "s").is_uniform  # whichever path a lane took
    assert shape(divergence, "a").is_uniform


def test_what_meets_below_a_divergent_branch_but_not_because_of_it():
    divergence = analysed("""
        entry: br i1 %v, label %left, label %right
        left: br i1 %c, label %one, label %two
        one: br label %both
        two: br label %both
        both: %r = phi i32 [ 1, %one ], [ 2, %two ]; br label %end
        right: br label %end
        end: %s = phi i32 [ %r, %both ], [ 3, %right ]; ret void
    """)
    assert shape(divergence, "r").is_uniform
    assert shape(divergence, "s").is_varying
    assert blocks_of(divergence.branches) == {"entry"}
    assert blocks_of(divergence.masked) == {"left", "one", "two", "both", "right"}


def test_divergent_paths_reconverge_at_a_block_that_no_single_branch_reaches_twice():
    """Sync dependence: `a && b` jumps to `no` from two blocks, and lanes come by both."""
    divergence = analysed("""
        entry: br i1 %v, label %second, label %no
        second: br i1 %c, label %yes, label %no
        yes: br label %end
        no: %why = phi i32 [ 1, %entry ], [ 2, %second ]; br label %end
        end: %r = phi i32 [ 3, %yes ], [ %why, %no ]; ret void
    """)
    assert shape(divergence, "why").is_varying
    assert shape(divergence, "r").is_varying
    assert blocks_of(divergence.branches) == {"entry"}


LOOP = """
    entry: br label %head
    head: %i = phi i32 [ 0, %entry ], [ %next, %more ]; br label %body
    body: {body}
    more: %next = add i32 %i, 1; %again = icmp ult i32 %next, {bound}; br i1 %again, label %head, label %end
    end: %last = add i32 %i, 0; ret void
"""


def test_a_loop_with_a_uniform_trip_count():
    divergence = analysed(LOOP.format(body="br label %more", bound="%u"))
    assert not divergence.loops
    assert not divergence.masked
    assert shape(divergence, "last").is_uniform


def test_a_loop_that_lanes_leave_one_by_one():
    """Temporal divergence: the count is uniform inside, and varying to lanes that have left."""
    divergence = analysed(LOOP.format(body="br label %more", bound="%x"))
    assert blocks_of(divergence.loops) == {"head"}
    assert {"head", "body", "more"} <= blocks_of(divergence.masked)
    assert "end" not in blocks_of(divergence.masked)
    assert shape(divergence, "i").is_uniform
    assert shape(divergence, "next").is_uniform
    assert shape(divergence, "i", "end").is_varying
    assert shape(divergence, "last").is_varying


def test_lanes_that_diverge_and_reconverge_within_an_iteration():
    body = "br i1 %v, label %side, label %more\n side: br label %more"
    divergence = analysed(LOOP.format(body=body, bound="%u"))
    assert not divergence.loops
    assert blocks_of(divergence.masked) == {"side"}
    assert shape(divergence, "last").is_uniform


def test_a_divergent_break_out_of_a_uniform_loop():
    divergence = analysed(LOOP.format(body="br i1 %v, label %end, label %more", bound="%u"))
    assert blocks_of(divergence.loops) == {"head"}
    assert shape(divergence, "i").is_uniform
    assert shape(divergence, "last").is_varying


NEST = """
    entry: br label %outer
    outer: %i = phi i32 [ 0, %entry ], [ %j, %outer.more ]; br label %inner
    inner: %k = phi i32 [ 0, %outer ], [ %m, %inner.more ]; br i1 {leaves}, label %{where}, label %inner.more
    inner.more: %m = add i32 %k, 1; %c1 = icmp ult i32 %m, {bound}; br i1 %c1, label %inner, label %outer.more
    outer.more: %seen = add i32 %k, 0; %j = add i32 %i, 1; %c2 = icmp ult i32 %j, %u; br i1 %c2, label %outer, label %end
    end: %last = add i32 %i, 0; ret void
"""


def test_an_inner_loop_alone():
    divergence = analysed(NEST.format(leaves="%c", where="outer.more", bound="%x"))
    assert blocks_of(divergence.loops) == {"inner"}
    assert shape(divergence, "k").is_uniform
    assert shape(divergence, "seen").is_varying
    assert shape(divergence, "i").is_uniform
    assert shape(divergence, "last").is_uniform


def test_an_exit_from_both_loops():
    divergence = analysed(NEST.format(leaves="%v", where="end", bound="%u"))
    assert blocks_of(divergence.loops) == {"inner", "outer"}
    assert shape(divergence, "i").is_uniform
    assert shape(divergence, "last").is_varying


def test_two_exits_of_a_divergent_loop_reconverge():
    divergence = analysed("""
        entry: br label %head
        head: %i = phi i32 [ 0, %entry ], [ %n, %more ]; br i1 %v, label %first, label %more
        more: %n = add i32 %i, 1; %c1 = icmp ult i32 %n, %u; br i1 %c1, label %head, label %second
        first: br label %end
        second: br label %end
        end: %r = phi i32 [ 1, %first ], [ 2, %second ]; ret void
    """)
    assert {"first", "second"} <= blocks_of(divergence.masked)
    assert "end" not in blocks_of(divergence.masked)
    assert shape(divergence, "r").is_varying


def test_a_branch_on_a_phi_after_a_divergent_one():
    """Shapes and divergence depend on each other: the second branch follows from the first."""
    divergence = analysed("""
        entry: br i1 %v, label %yes, label %end
        yes: br label %end
        end: %r = phi i32 [ 1, %yes ], [ 2, %entry ]; %t = icmp eq i32 %r, 1; br i1 %t, label %p1, label %q
        p1: br label %q
        q: %s = phi i32 [ 5, %p1 ], [ 6, %end ]; ret void
    """)
    assert blocks_of(divergence.branches) == {"entry", "end"}
    assert shape(divergence, "s").is_varying


def test_lanes_that_may_be_missing_from_the_start():
    divergence = analysed("entry: br label %end\n end: ret void", all_masked=True)
    assert {"entry", "end"} <= blocks_of(divergence.masked)
    assert not divergence.branches


def test_memory():
    divergence = analysed("""
        entry: %same = load i32, ptr %p; %own = alloca [3 x i32]; %q = getelementptr i32, ptr %p, i32 %x; %each = load i32, ptr %q; %old = atomicrmw add ptr %p, i32 1 monotonic; %seen = load atomic i32, ptr %p monotonic, align 4; ret void
    """)
    assert shape(divergence, "same").is_uniform
    assert shape(divergence, "own").offsets == tuple(12 * lane for lane in range(WIDTH))
    assert shape(divergence, "q").stride == 4
    for name in ("each", "old", "seen"):
        assert shape(divergence, name).is_varying  # another thread may write between lanes


def test_a_loop_without_end():
    with pytest.raises(Unsupported, match="never ends"):
        analysed("entry: br label %head\n head: br label %head")
