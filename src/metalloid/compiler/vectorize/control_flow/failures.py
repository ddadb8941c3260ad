"""Ends of a launch that vector code finds out by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.compiler.ir.types import I1
from metalloid.compiler.vectorize.builder import Builder


def fail_where(
    builder: Builder, bad: str, failure: str, given: Callable[[str, str], Sequence[tuple[str, str]]]
) -> None:
    """End the launch if a bit of `bad` is set for an active lane.

    Parameters
    ----------
    builder : Builder
    bad : str
        ``<W x i1>``; inactive lanes may have anything.
    failure : str
        The function to call, which does not return.
    given : callable
        From the first such lane, and a bit for each such lane, both integers of as many bits as
        there are lanes, to types and values of the function's arguments.
    """
    bits, active = builder.wide(I1), builder.mask_as_bits()
    if active is not None:
        bad = builder.new(f"select {bits} {active}, {bits} {bad}, {bits} zeroinitializer")
    number, integer = builder.bits_as_integer(bad), f"i{builder.width}"
    none = builder.new(f"icmp eq {integer} {number}, 0")
    fine, failed = builder.fresh_label("fine"), builder.fresh_label("failed")
    builder.cond_br(none, fine, failed)
    builder.label(failed)
    lane = builder.call(integer, f"@llvm.cttz.{integer}", [(integer, number), ("i1", "true")])
    builder.call("void", failure, given(lane, number))
    builder.unreachable()
    builder.label(fine)


def others_of(builder: Builder, number: str) -> str:
    """The number of lanes that fail besides the first, from a bit for each."""
    integer = f"i{builder.width}"
    count = builder.call(integer, f"@llvm.ctpop.{integer}", [(integer, number)])
    if builder.width != 32:
        count = builder.new(f"{'zext' if builder.width < 32 else 'trunc'} {integer} {count} to i32")
    return builder.new(f"sub i32 {count}, 1")


def thread_of(builder: Builder, first: str, lane: str) -> str:
    """The index in its threadgroup of the thread in `lane`, from that of lane 0's."""
    if builder.width < 32:
        lane = builder.new(f"zext i{builder.width} {lane} to i32")
    return builder.new(f"add i32 {first}, {lane}")
