"""Collectors of atomic updates: where a call keeps them, and the code that fills and empties them.

A collector has a place in memory, and what is to be added there, say. An instruction has one for
all simdgroups, and for numbers that lanes have side by side one for each simdgroup: behind the
others, which come first. All begin as zeros, which is no place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from metalloid.compiler.llvm.types import Type
from metalloid.compiler.spmd import atomic_rows
from metalloid.compiler.spmd.updates import BOTH, computed
from metalloid.compiler.spmd.writer import VECTOR_ATTRIBUTES, Writer

#: Bytes of a place and a number, of what is in front of the numbers of a row, and of each of them.
_ONE, _LINE, _NUMBER = 16, 64, 4


@dataclass
class Collectors:
    """The collectors that a function of simdgroups uses.

    Attributes
    ----------
    words : str
        The function's parameter that points to the words of the call.
    word : int
        Which of them is the address of the collectors.
    count : int
        Instructions that have some.
    width : int
        Lanes.
    has_rows : bool
        Whether there are collectors for each simdgroup.
    used : set of (bool, int, str)
        The collectors used: whether a simdgroup's own, how far behind the first of its kind, and
        the function that brings to memory what it has.
    """

    words: str
    word: int
    count: int
    width: int
    has_rows: bool
    used: set[tuple[bool, int, str]] = field(default_factory=set)

    @property
    def shared_bytes(self) -> int:
        """What those for all simdgroups take."""
        return _in_lines(self.count * _ONE)

    @property
    def own_bytes(self) -> int:
        """What those of a simdgroup take."""
        return self.count * self._row_bytes if self.has_rows else 0

    @property
    def _row_bytes(self) -> int:
        return _LINE + _in_lines(self.width * _NUMBER)

    def collect(
        self, writer: Writer, number: int, operation: str, type: Type, given: tuple[str, str],
        is_row: bool,
    ) -> None:  # fmt: skip
        """Write an update by an instruction's collector: at an address, by a number or a vector."""
        address, value = given
        distance = number * (self._row_bytes if is_row else _ONE)
        words = writer.new(f"getelementptr ptr, ptr {self.words}, i64 {self.word}")
        collector = writer.new(f"load ptr, ptr {words}")
        behind = f"{distance}"
        if is_row:
            simdgroup = writer.new(f"udiv i32 {writer.first_index}, {self.width}")
            own = writer.new(f"mul i32 {simdgroup}, {self.own_bytes}")
            behind = writer.new(f"add i32 {own}, {self.shared_bytes + distance}")
        collector = writer.new(f"getelementptr i8, ptr {collector}, i32 {behind}")
        kind = f"{'row' if is_row else 'one'}.{operation}.{type}"
        hand_over, collect = f"@mtl.hand_over.{kind}", f"@mtl.collect.{kind}"
        wide = writer.wide(type) if is_row else str(type)
        writer.call("void", collect, [("ptr", collector), ("ptr", address), (wide, value)])
        numbers = _LINE if is_row else _ONE // 2
        update = f"%old = atomicrmw {operation} ptr %place, {wide} %sum monotonic"
        if is_row:
            row, writer.declarations[row] = atomic_rows.function(operation, type, self.width)
            update = f"call void {row}(ptr %place, {wide} %sum)"
        writer.declarations[hand_over] = _hand_over(hand_over, update, wide, numbers)
        both = computed(writer.declarations, BOTH[operation], wide, "%sum", "%given")
        writer.declarations[collect] = _collect(collect, hand_over, both, wide, numbers)
        self.used.add((is_row, distance, hand_over))


def _in_lines(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _hand_over(name: str, update: str, wide: str, numbers: int) -> str:
    """The function that does an update that has been collected, if one has."""
    return f"""\
define internal void {name}(ptr %collector) noinline {VECTOR_ATTRIBUTES} {{
entry:
  %place = load ptr, ptr %collector
  %is_none = icmp eq ptr %place, null
  br i1 %is_none, label %end, label %update
update:
  %numbers = getelementptr i8, ptr %collector, i64 {numbers}
  %sum = load {wide}, ptr %numbers, align {numbers}
  {update}
  br label %end
end:
  ret void
}}
"""


def _collect(name: str, hand_over: str, both: str, wide: str, numbers: int) -> str:
    """The function that adds to what a collector has, or begins anew if the place is another."""
    head = f"{name}(ptr %collector, ptr %at, {wide} %given) alwaysinline {VECTOR_ATTRIBUTES}"
    return f"""\
define internal void {head} {{
entry:
  %numbers = getelementptr i8, ptr %collector, i64 {numbers}
  %place = load ptr, ptr %collector
  %is_same = icmp eq ptr %place, %at
  br i1 %is_same, label %more, label %another
more:
  %sum = load {wide}, ptr %numbers, align {numbers}
  %both = {both}
  br label %end
another:
  call void {hand_over}(ptr %collector)
  store ptr %at, ptr %collector
  br label %end
end:
  %new = phi {wide} [ %both, %more ], [ %given, %another ]
  store {wide} %new, ptr %numbers, align {numbers}
  ret void
}}
"""


def at_the_end(collectors: list[Collectors]) -> str:
    """The function ``mtl_hand_over``, which empties all collectors of a call."""
    used = sorted(set().union(*(each.used for each in collectors)))
    of_all, of_each = ([one[1:] for one in used if one[0] is own] for own in (False, True))
    lines = [
        "define internal void @mtl_hand_over(ptr %collectors, i32 %simdgroups) "
        f"{VECTOR_ATTRIBUTES} {{",
        "entry:",
        *_calls("%collectors", of_all),
        "  br label %next",
        "next:",
        "  %i = phi i32 [ 0, %entry ], [ %following, %own ]",
        "  %is_end = icmp eq i32 %i, %simdgroups",
        "  br i1 %is_end, label %end, label %own",
        "own:",
        f"  %distance = mul i32 %i, {max(each.own_bytes for each in collectors)}",
        f"  %behind = add i32 %distance, {max(each.shared_bytes for each in collectors)}",
        "  %begin = getelementptr i8, ptr %collectors, i32 %behind",
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
        for number, (distance, hand_over) in enumerate(used)
        for line in (
            f"  {begin}.{number} = getelementptr i8, ptr {begin}, i64 {distance}",
            f"  call void {hand_over}(ptr {begin}.{number})",
        )
    ]
