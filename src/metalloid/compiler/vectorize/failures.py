"""Ends of a launch that vector code finds out by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.compiler.ir.types import I1
from metalloid.compiler.vectorize.builder import Writer


def fail_where(
    writer: Writer, bad: str, failure: str, given: Callable[[str], Sequence[tuple[str, str]]]
) -> None:
    """End the launch if a bit of `bad` is set for an active lane.

    Parameters
    ----------
    writer : Writer
    bad : str
        ``<W x i1>``; inactive lanes may have anything.
    failure : str
        The function to call, which does not return.
    given : callable
        From the first such lane, an integer of as many bits as there are lanes, to types and values
        of the function's arguments.
    """
    bits, active = writer.wide(I1), writer.mask_as_bits()
    if active is not None:
        bad = writer.new(f"select {bits} {active}, {bits} {bad}, {bits} zeroinitializer")
    number, integer = writer.bits_as_integer(bad), f"i{writer.width}"
    none = writer.new(f"icmp eq {integer} {number}, 0")
    fine, failed = writer.fresh_label("fine"), writer.fresh_label("failed")
    writer.emit(f"br i1 {none}, label %{fine}, label %{failed}")
    writer.label(failed)
    lane = writer.call(integer, f"@llvm.cttz.{integer}", [(integer, number), ("i1", "true")])
    writer.call("void", failure, given(lane))
    writer.emit("unreachable")
    writer.label(fine)


def thread_of(writer: Writer, first: str, lane: str) -> str:
    """The index in its threadgroup of the thread in `lane`, from that of lane 0's."""
    if writer.width < 32:
        lane = writer.new(f"zext i{writer.width} {lane} to i32")
    return writer.new(f"add i32 {first}, {lane}")
