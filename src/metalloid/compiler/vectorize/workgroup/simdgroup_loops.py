"""A simdgroup's function in pieces, from barrier to barrier, and the loops over simdgroups.

Each region (`region_lines`) becomes a function, and each such function stands in a loop over the
simdgroups of a threadgroup: a *round*. So nothing is decided inside the loop, what simdgroups have
in common is computed once, and their instructions overlap.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from metalloid.compiler.vectorize.builder import SCALAR_BYTES, VECTOR_ATTRIBUTES

#: What a round is given: what the kernel's function is given of the launch and the threadgroup; the
#: simdgroups to run, the position of the first thread, their states, and what they have in common.
_PARAMETERS = (
    "ptr noalias %ids, ptr noalias %words, ptr noalias %memory, i32 %origin_x, i32 %origin_y, "
    "i32 %origin_z, i32 %size_x, i32 %size_y, i32 %threads, i32 %first, i32 %count, "
    "i32 %first_x, i32 %first_y, i32 %first_z, ptr noalias %states, ptr noalias %common"
)
_ARGUMENTS = _PARAMETERS.replace(" noalias", "")


@dataclass(frozen=True)
class SimdgroupLoops:
    """The loops over the simdgroups of a threadgroup.

    Attributes
    ----------
    full, partial : str
        What the functions for a simdgroup with all lanes, and with some, are called; each may be
        empty if there is only the other.
    outcomes : sequence of int or None
        What the function for all lanes returns in each region, where that is known.
    width : int
        Lanes.
    state_bytes : int
        Distance of the states of two simdgroups.
    common : sequence of str
        Types of what simdgroups have in common.
    uses, changes : sequence of set of int
        Which of these each region needs, and which of those it changes.
    in_step : bool
        Whether all simdgroups come to the same barriers for certain, with all their lanes.
    positions : tuple of str or None
        The position of the first thread of simdgroup ``%i``, whose index is ``%index``, in the
        threadgroup, where the shape of the threadgroup tells.
    own_bytes : int
        Of threadgroup memory that simdgroups in step have on the stack; 0: they use what they are
        given.
    """

    full: str
    partial: str
    outcomes: Sequence[int | None]
    width: int
    state_bytes: int
    common: Sequence[str]
    uses: Sequence[Set[int]]
    changes: Sequence[Set[int]]
    in_step: bool
    positions: tuple[str, str, str] | None
    own_bytes: int = 0

    def text(self) -> str:
        """The function ``mtl_round``, which runs a region of simdgroups that lie side by side.

        If it is to go on, and all of them are there, it runs the next regions as well; of
        simdgroups in step always. It returns the region that the first has come to in its upper
        half, and in the lower one whether all have, with all their lanes.
        """
        numbers = range(len(self.outcomes))
        watched = [number for number in numbers if self._outcome(number) is None]
        watched_edge = ", [ %next, %watched ]" if watched else ""
        cases = " ".join(f"i32 {number}, label %r{number}" for number in numbers)
        begin, end = _memory_of_its_own(self.own_bytes) if self.in_step else ((), ())
        parameters = _PARAMETERS.replace("%memory", "%given") if begin else _PARAMETERS
        lines = [
            f"define internal i64 @mtl_round(i32 %region, i1 zeroext %goes_on, {parameters}) "
            f"{VECTOR_ATTRIBUTES} {{",
            "entry:",
            *begin,
            "  br label %choice",
            "choice:",
            f"  %number = phi i32 [ %region, %entry ]{watched_edge}",
            f"  switch i32 %number, label %none [ {cases} ]",
        ]
        for number in numbers:
            call = f"  %reached{number} = call i64 @mtl_round.{number}({_ARGUMENTS})"
            lines += [f"r{number}:", call, *self._after_region(number)]
        if watched:
            reached = ", ".join(f"[ %reached{number}, %r{number} ]" for number in watched)
            go_on = _GO_ON_IN_STEP if self.in_step else _GO_ON
            lines += ["watched:", f"  %reached = phi i64 {reached}", *_WHERE, *go_on]
        lines += ["end:", *end, "  ret i64 1", "none:", "  unreachable", "}", ""]
        return "\n".join((*(self._round(number) for number in numbers), *lines))

    def _outcome(self, number: int) -> int | None:
        """The value that all simdgroups return, if known at compile time."""
        return self.outcomes[number] if self.in_step or not self.partial else None

    def _after_region(self, number: int) -> list[str]:
        """The lines after a loop over simdgroups."""
        outcome = self._outcome(number)
        if outcome is None:
            return ["  br label %watched"]
        region = outcome >> 32
        following = f"r{region}" if region else "end"
        if self.in_step:
            return [f"  br label %{following}"]
        return [
            f"  br i1 %goes_on, label %{following}, label %alone{number}",
            f"alone{number}:",
            f"  %offset{number} = mul i32 %first, {self.state_bytes}",
            f"  %state{number} = getelementptr i8, ptr %states, i32 %offset{number}",
            f"  store i64 {outcome}, ptr %state{number}",
            f"  ret i64 {region << 32 | 1}",
        ]

    def _round(self, number: int) -> str:
        is_watched = self._outcome(number) is None and not self.in_step
        common = sorted(self.uses[number])
        lines = [
            f"define internal i64 @mtl_round.{number}({_PARAMETERS}) {VECTOR_ATTRIBUTES} {{",
            "entry:",
            "  %end = add i32 %first, %count",
            f"  %own = alloca [{len(self.common)} x i{8 * SCALAR_BYTES}]",
            *(line for n in common for line in self._before(n)),
            "  br label %simdgroup",
            "simdgroup:",
            "  %i = phi i32 [ %first, %entry ], [ %next, %done ]",
            *(_WATCHED if is_watched else ()),
            *self._position(),
            "  %left = sub i32 %threads, %index",
            f"  %fits = icmp uge i32 %left, {self.width}",
            f"  %members = select i1 %fits, i32 {self.width}, i32 %left",
            *(f"  %grid_{n} = add i32 %origin_{n}, %{n}" for n in "xyz"),
            "  %far = zext i32 %i to i64",
            f"  %offset = mul nuw nsw i64 %far, {self.state_bytes}",
            "  %state = getelementptr i8, ptr %states, i64 %offset",
            *(f"  store {self.common[n]} %before{n}, ptr %own{n}" for n in common),
            *self._calls(number),
            *(line for n in sorted(self.changes[number]) for line in self._after(n)),
            *(("  store i64 %reached, ptr %state", *_WATCHING) if is_watched else ()),
            *self._next_position(),
            "  %next = add nuw nsw i32 %i, 1",
            "  %is_last = icmp eq i32 %next, %end",
            "  br i1 %is_last, label %return, label %simdgroup",
            "return:",
            *(_REPORTED if is_watched else ("  %result = or i64 %reached, 1", "  ret i64 %result")),
            "}",
            "",
        ]
        return "\n".join(lines)

    def _calls(self, number: int) -> list[str]:
        def call(name: str) -> str:
            return (
                f"call i64 @{name}.{number}(ptr %ids, ptr %words, ptr %memory, i32 %x, i32 %y, "
                "i32 %z, i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %index, i32 %size_x, "
                "i32 %size_y, i32 %members, ptr %state, ptr %own)"
            )

        if not (self.full and self.partial):
            return [f"  %reached = {call(self.full or self.partial)}", "  br label %done", "done:"]
        return [
            "  br i1 %fits, label %full, label %partial",
            "full:", f"  %of_full = {call(self.full)}", "  br label %done",
            "partial:", f"  %of_partial = {call(self.partial)}", "  br label %done",
            "done:", "  %reached = phi i64 [ %of_full, %full ], [ %of_partial, %partial ]",
        ]  # fmt: skip

    # -- the position of a simdgroup's first thread

    def _position(self) -> list[str]:
        index = f"  %index = mul nuw nsw i32 %i, {self.width}"
        if not self.full:
            # Rows end anywhere.
            return [
                index,
                "  %x = urem i32 %index, %size_x",
                "  %row = udiv i32 %index, %size_x",
                "  %y = urem i32 %row, %size_y",
                "  %z = udiv i32 %row, %size_y",
            ]
        if self.positions is not None:
            given = zip("xyz", self.positions, strict=True)
            return [index, *(f"  %{n} = add i32 {position}, 0" for n, position in given)]
        return [
            "  %x = phi i32 [ %first_x, %entry ], [ %x.next, %done ]",
            "  %y = phi i32 [ %first_y, %entry ], [ %y.next, %done ]",
            "  %z = phi i32 [ %first_z, %entry ], [ %z.sum, %done ]",
            index,
        ]

    def _next_position(self) -> list[str]:
        if not self.full or self.positions is not None:
            return []
        return [f"  %x.sum = add i32 %x, {self.width}", *_carried("x", "y"), *_carried("y", "z")]

    # -- what simdgroups have in common: each begins with what there was before the round

    def _before(self, n: int) -> list[str]:
        return [
            f"  %own{n} = getelementptr i8, ptr %own, i64 {n * SCALAR_BYTES}",
            f"  %common{n} = getelementptr i8, ptr %common, i64 {n * SCALAR_BYTES}",
            f"  %before{n} = load {self.common[n]}, ptr %common{n}",
        ]

    def _after(self, n: int) -> list[str]:
        type = self.common[n]
        return [
            f"  %after{n} = load {type}, ptr %own{n}",
            f"  store {type} %after{n}, ptr %common{n}",
        ]


def _memory_of_its_own(size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines that make threadgroup memory and forget it: what is not read before need not be stored.

    What it begins with is not LLVM's undefined value, which is another one each time it is read.
    """
    if not size:
        return (), ()
    array, alive = f"[{size} x i8]", "call void @llvm.lifetime.{}.p0(ptr %own_memory)"
    begin = (
        f"  %own_memory = alloca {array}, align 128",
        f"  {alive.format('start')}",
        f'  call void asm "", "=*m"(ptr elementtype({array}) captures(none) %own_memory) '
        "memory(argmem: write) nounwind",
        f"  %memory = getelementptr i8, ptr %own_memory, i64 {size}",
    )
    return begin, (f"  {alive.format('end')}",)


def _carried(axis: str, higher: str) -> list[str]:
    """From one row, or layer, to the next."""
    return [
        f"  %{axis}.over = icmp uge i32 %{axis}.sum, %size_{axis}",
        f"  %{axis}.next = select i1 %{axis}.over, i32 0, i32 %{axis}.sum",
        f"  %{higher}.one = zext i1 %{axis}.over to i32",
        f"  %{higher}.sum = add i32 %{higher}, %{higher}.one",
    ]


#: Lines of a loop whose simdgroups may reach different barriers.
_WATCHED = (
    "  %leader = phi i64 [ 0, %entry ], [ %leader.next, %done ]",
    "  %agree = phi i1 [ true, %entry ], [ %agree.next, %done ]",
)
_WATCHING = (
    "  %is_first = icmp eq i32 %i, %first",
    "  %leader.next = select i1 %is_first, i64 %reached, i64 %leader",
    "  %region = lshr i64 %reached, 32",
    "  %region_of_leader = lshr i64 %leader.next, 32",
    "  %is_same = icmp eq i64 %region, %region_of_leader",
    "  %arrived = trunc i64 %reached to i32",
    "  %missing = sub i32 32, %members",
    "  %all = lshr i32 -1, %missing",
    "  %is_complete = icmp eq i32 %arrived, %all",
    "  %has_ended = icmp eq i64 %region, 0",
    "  %is_fine = or i1 %is_complete, %has_ended",
    "  %is_both = and i1 %is_same, %is_fine",
    "  %agree.next = and i1 %agree, %is_both",
)
_REPORTED = (
    "  %where = and i64 %leader.next, -4294967296",
    "  %ok = zext i1 %agree.next to i64",
    "  %result = or i64 %where, %ok",
    "  ret i64 %result",
)
#: What follows a round whose result says where simdgroups have come to.
_WHERE = (
    "  %where = lshr i64 %reached, 32",
    "  %next = trunc i64 %where to i32",
    "  %has_ended = icmp eq i32 %next, 0",
)
_GO_ON_IN_STEP = ("  br i1 %has_ended, label %end, label %choice",)
_GO_ON = (
    "  %is_together = trunc i64 %reached to i1",
    "  %may_go_on = select i1 %has_ended, i1 false, i1 %is_together",
    "  %is_next = select i1 %may_go_on, i1 %goes_on, i1 false",
    "  br i1 %is_next, label %choice, label %back",
    "back:",
    "  ret i64 %reached",
)
