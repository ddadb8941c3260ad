"""Privatised atomic updates: the code that accumulates them, and that flushes them to memory.

An update whose result is unused is added to an accumulator instead; the accumulator is flushed when
its address changes, and at the end of the call.
"""

from __future__ import annotations

from metalloid.compiler.analysis.atomicrmw_ops import BOTH, computed
from metalloid.compiler.ir.types import Type
from metalloid.compiler.vectorize.atomics import packed
from metalloid.compiler.vectorize.atomics.accumulators import LINE_BYTES, ONE_BYTES, Accumulators
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES, Builder


def accumulate(
    builder: Builder,
    accumulators: Accumulators,
    number: int,
    operation: str,
    type: Type,
    given: tuple[str, str],
    is_row: bool,
) -> None:
    """Add to the accumulator of the atomic instruction with that number.

    Parameters
    ----------
    given : (str, str)
        The address, and the operand: a number, or a vector if `is_row`.
    """
    address, value = given
    distance = number * (accumulators.row_bytes if is_row else ONE_BYTES)
    words = builder.new(f"getelementptr ptr, ptr {accumulators.words}, i64 {accumulators.word}")
    accumulator = builder.new(f"load ptr, ptr {words}")
    offset = f"{distance}"
    if is_row:
        simdgroup = builder.new(f"udiv i32 {builder.first_index}, {accumulators.width}")
        own = builder.new(f"mul i32 {simdgroup}, {accumulators.own_bytes}")
        offset = builder.new(f"add i32 {own}, {accumulators.shared_bytes + distance}")
    accumulator = builder.new(f"getelementptr i8, ptr {accumulator}, i32 {offset}")
    kind = f"{'row' if is_row else 'one'}.{operation}.{type}"
    flush, accumulated = f"@mtl.flush.{kind}", f"@mtl.accumulate.{kind}"
    wide = builder.wide(type) if is_row else str(type)
    builder.call("void", accumulated, [("ptr", accumulator), ("ptr", address), (wide, value)])
    numbers = LINE_BYTES if is_row else ONE_BYTES // 2
    update = f"%old = atomicrmw {operation} ptr %address, {wide} %sum monotonic"
    if is_row:
        row, builder.declarations[row] = packed.function(operation, type, accumulators.width)
        update = f"call void {row}(ptr %address, {wide} %sum)"
    builder.declarations[flush] = _flush(flush, update, wide, numbers)
    both = computed(builder.declarations, BOTH[operation], wide, "%sum", "%given")
    builder.declarations[accumulated] = _accumulate(accumulated, flush, both, wide, numbers)
    accumulators.used.add((is_row, distance, flush))


def _flush(name: str, update: str, wide: str, numbers: int) -> str:
    """A function that does the accumulated update, if there is one."""
    return f"""\
define internal void {name}(ptr %accumulator) noinline {VECTOR_ATTRIBUTES} {{
entry:
  %address = load ptr, ptr %accumulator
  %is_none = icmp eq ptr %address, null
  br i1 %is_none, label %end, label %update
update:
  %numbers = getelementptr i8, ptr %accumulator, i64 {numbers}
  %sum = load {wide}, ptr %numbers, align {numbers}
  {update}
  br label %end
end:
  ret void
}}
"""


def _accumulate(name: str, flush: str, both: str, wide: str, numbers: int) -> str:
    """A function that adds to an accumulator; a new address flushes it first."""
    head = f"{name}(ptr %accumulator, ptr %at, {wide} %given) alwaysinline {VECTOR_ATTRIBUTES}"
    return f"""\
define internal void {head} {{
entry:
  %numbers = getelementptr i8, ptr %accumulator, i64 {numbers}
  %address = load ptr, ptr %accumulator
  %is_same = icmp eq ptr %address, %at
  br i1 %is_same, label %more, label %another
more:
  %sum = load {wide}, ptr %numbers, align {numbers}
  %both = {both}
  br label %end
another:
  call void {flush}(ptr %accumulator)
  store ptr %at, ptr %accumulator
  br label %end
end:
  %new = phi {wide} [ %both, %more ], [ %given, %another ]
  store {wide} %new, ptr %numbers, align {numbers}
  ret void
}}
"""


def flush_all(accumulators: list[Accumulators]) -> str:
    """The function ``mtl_flush``, which flushes all accumulators of a call."""
    used = sorted(set().union(*(each.used for each in accumulators)))
    of_all, of_each = ([one[1:] for one in used if one[0] is own] for own in (False, True))
    lines = [
        "define internal void @mtl_flush(ptr %accumulators, i32 %simdgroups) "
        f"{VECTOR_ATTRIBUTES} {{",
        "entry:",
        *_calls("%accumulators", of_all),
        "  br label %next",
        "next:",
        "  %i = phi i32 [ 0, %entry ], [ %following, %own ]",
        "  %is_end = icmp eq i32 %i, %simdgroups",
        "  br i1 %is_end, label %end, label %own",
        "own:",
        f"  %distance = mul i32 %i, {max(each.own_bytes for each in accumulators)}",
        f"  %offset = add i32 %distance, {max(each.shared_bytes for each in accumulators)}",
        "  %begin = getelementptr i8, ptr %accumulators, i32 %offset",
        *_calls("%begin", of_each),
        "  %following = add i32 %i, 1",
        "  br label %next",
        "end:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _calls(begin: str, used: list[tuple[int, str]]) -> list[str]:
    return [
        line
        for number, (distance, flush) in enumerate(used)
        for line in (
            f"  {begin}.{number} = getelementptr i8, ptr {begin}, i64 {distance}",
            f"  call void {flush}(ptr {begin}.{number})",
        )
    ]
