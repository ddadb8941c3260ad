"""The loops over the simdgroups of a threadgroup, one for each parallel region.

Each region between two barriers is a function (`outline_regions`), and each such function is called
in a loop over the simdgroups (PoCL's work-item loop). The loop has no branch on the region,
workgroup-uniform values are computed once, and instructions of several simdgroups overlap.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from metalloid.compiler.vectorize.builder import SCALAR_BYTES, VECTOR_ATTRIBUTES

#: Parameters of a loop: those of the kernel's function for the launch and the threadgroup; the
#: simdgroups to run, the position of their first thread, their frames, and the uniform frame.
_PARAMETERS = (
    "ptr noalias %ids, ptr noalias %words, ptr noalias %memory, i32 %origin_x, i32 %origin_y, "
    "i32 %origin_z, i32 %size_x, i32 %size_y, i32 %threads, i32 %first, i32 %count, "
    "i32 %first_x, i32 %first_y, i32 %first_z, ptr noalias %frames, ptr noalias %uniforms"
)
_ARGUMENTS = _PARAMETERS.replace(" noalias", "")


@dataclass(frozen=True)
class SimdgroupLoops:
    """The loops over the simdgroups of a threadgroup.

    Attributes
    ----------
    full, partial : str
        Names of the functions for full simdgroups and for the tail; one of them may be empty.
    successors : sequence of int or None
        The value that the function for full simdgroups returns in each region, if it is known.
    width : int
        Lanes.
    frame_bytes : int
        Distance between the frames of two simdgroups.
    common : sequence of str
        Types of workgroup-uniform values.
    live_in, defs : sequence of set of int
        Indices of those that each region reads, and that it writes.
    is_uniform : bool
        Whether all simdgroups reach the same barriers, with all their lanes.
    positions : tuple of str or None
        The position in the threadgroup of the first thread of simdgroup ``%i``, whose index is
        ``%index``, if it follows from the shape of the threadgroup.
    own_bytes : int
        Size of threadgroup memory on the stack, if barriers are uniform; 0 if the caller allocates
        it.
    """

    full: str
    partial: str
    successors: Sequence[int | None]
    width: int
    frame_bytes: int
    common: Sequence[str]
    live_in: Sequence[Set[int]]
    defs: Sequence[Set[int]]
    is_uniform: bool
    positions: tuple[str, str, str] | None
    own_bytes: int = 0

    def text(self) -> str:
        """The function ``mtl_simdgroup_loop``, which runs a region of adjacent simdgroups.

        If `goes_on` is true and all simdgroups reach the same barrier, it runs the next regions as
        well; with uniform barriers always. The upper half of the result is the region that the
        first simdgroup reaches, the lower one whether all do, with all their lanes.
        """
        numbers = range(len(self.successors))
        watched = [number for number in numbers if self._successor(number) is None]
        watched_edge = ", [ %next, %watched ]" if watched else ""
        cases = " ".join(f"i32 {number}, label %r{number}" for number in numbers)
        begin, end = _stack_memory(self.own_bytes) if self.is_uniform else ((), ())
        parameters = _PARAMETERS.replace("%memory", "%given") if begin else _PARAMETERS
        lines = [
            f"define internal i64 @mtl_simdgroup_loop(i32 %region, i1 zeroext %goes_on, "
            f"{parameters}) {VECTOR_ATTRIBUTES} {{",
            "entry:",
            *begin,
            "  br label %choice",
            "choice:",
            f"  %number = phi i32 [ %region, %entry ]{watched_edge}",
            f"  switch i32 %number, label %none [ {cases} ]",
        ]
        for number in numbers:
            call = f"  %reached{number} = call i64 @mtl_simdgroup_loop.{number}({_ARGUMENTS})"
            lines += [f"r{number}:", call, *self._after_region(number)]
        if watched:
            reached = ", ".join(f"[ %reached{number}, %r{number} ]" for number in watched)
            go_on = _CONTINUE_IF_UNIFORM if self.is_uniform else _CONTINUE
            lines += ["watched:", f"  %reached = phi i64 {reached}", *_WHERE, *go_on]
        lines += ["end:", *end, "  ret i64 1", "none:", "  unreachable", "}", ""]
        return "\n".join((*(self._loop(number) for number in numbers), *lines))

    def _successor(self, number: int) -> int | None:
        """The value that all simdgroups return, if known at compile time."""
        return self.successors[number] if self.is_uniform or not self.partial else None

    def _after_region(self, number: int) -> list[str]:
        """The lines after a loop over simdgroups."""
        successor = self._successor(number)
        if successor is None:
            return ["  br label %watched"]
        region = successor >> 32
        following = f"r{region}" if region else "end"
        if self.is_uniform:
            return [f"  br label %{following}"]
        return [
            f"  br i1 %goes_on, label %{following}, label %alone{number}",
            f"alone{number}:",
            f"  %offset{number} = mul i32 %first, {self.frame_bytes}",
            f"  %frame{number} = getelementptr i8, ptr %frames, i32 %offset{number}",
            f"  store i64 {successor}, ptr %frame{number}",
            f"  ret i64 {region << 32 | 1}",
        ]

    def _loop(self, number: int) -> str:
        is_watched = self._successor(number) is None and not self.is_uniform
        common = sorted(self.live_in[number])
        lines = [
            f"define internal i64 @mtl_simdgroup_loop.{number}({_PARAMETERS}) "
            f"{VECTOR_ATTRIBUTES} {{",
            "entry:",
            "  %end = add i32 %first, %count",
            f"  %locals = alloca [{len(self.common)} x i{8 * SCALAR_BYTES}]",
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
            f"  %offset = mul nuw nsw i64 %far, {self.frame_bytes}",
            "  %frame = getelementptr i8, ptr %frames, i64 %offset",
            *(f"  store {self.common[n]} %before{n}, ptr %local{n}" for n in common),
            *self._calls(number),
            *(line for n in sorted(self.defs[number]) for line in self._after(n)),
            *(("  store i64 %reached, ptr %frame", *_WATCHING) if is_watched else ()),
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
                "i32 %size_y, i32 %members, ptr %frame, ptr %locals)"
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

    # -- workgroup-uniform values: each simdgroup begins with those from before the loop

    def _before(self, n: int) -> list[str]:
        return [
            f"  %local{n} = getelementptr i8, ptr %locals, i64 {n * SCALAR_BYTES}",
            f"  %uniforms{n} = getelementptr i8, ptr %uniforms, i64 {n * SCALAR_BYTES}",
            f"  %before{n} = load {self.common[n]}, ptr %uniforms{n}",
        ]

    def _after(self, n: int) -> list[str]:
        type = self.common[n]
        return [
            f"  %after{n} = load {type}, ptr %local{n}",
            f"  store {type} %after{n}, ptr %uniforms{n}",
        ]


def _stack_memory(size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines that begin and end the lifetime of threadgroup memory: LLVM removes dead stores.

    Its initial contents are not LLVM's undefined value, which may differ at each read.
    """
    if not size:
        return (), ()
    array, alive = f"[{size} x i8]", "call void @llvm.lifetime.{}.p0(ptr %stack_memory)"
    begin = (
        f"  %stack_memory = alloca {array}, align 128",
        f"  {alive.format('start')}",
        f'  call void asm "", "=*m"(ptr elementtype({array}) captures(none) %stack_memory) '
        "memory(argmem: write) nounwind",
        f"  %memory = getelementptr i8, ptr %stack_memory, i64 {size}",
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
    "  %agrees = and i1 %is_same, %is_fine",
    "  %agree.next = and i1 %agree, %agrees",
)
_REPORTED = (
    "  %where = and i64 %leader.next, -4294967296",
    "  %ok = zext i1 %agree.next to i64",
    "  %result = or i64 %where, %ok",
    "  ret i64 %result",
)
#: Lines after a loop whose result has the region that simdgroups reached.
_WHERE = (
    "  %where = lshr i64 %reached, 32",
    "  %next = trunc i64 %where to i32",
    "  %has_ended = icmp eq i32 %next, 0",
)
_CONTINUE_IF_UNIFORM = ("  br i1 %has_ended, label %end, label %choice",)
_CONTINUE = (
    "  %all_reached = trunc i64 %reached to i1",
    "  %may_go_on = select i1 %has_ended, i1 false, i1 %all_reached",
    "  %is_next = select i1 %may_go_on, i1 %goes_on, i1 false",
    "  br i1 %is_next, label %choice, label %back",
    "back:",
    "  ret i64 %reached",
)
