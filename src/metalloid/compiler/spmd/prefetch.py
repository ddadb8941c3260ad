"""Arrays that a processor should look ahead into.

It starts loads as far ahead as its window of some hundred instructions reaches. Where threads do
much with what they load, that is not far enough to keep the memory busy meanwhile; where they do
little it is, and asking would only cost time.
"""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Function
from metalloid.compiler.spmd.writer import Writer

#: Bytes: the time of the memory, in rows of a kernel that computes.
_AHEAD = 1024
_LINE = 64
#: Instructions for each load.
_MUCH = 12


def computes_much(function: Function) -> bool:
    """Whether threads do much with what they load."""
    all_ = list(function.instructions())
    loads = sum(one.op == "load" and not one.reads_the_same for one in all_)
    return len(all_) >= _MUCH * loads


def look_ahead(writer: Writer, address: str, size: int) -> None:
    """Ask for what the following simdgroups will load where this one loads `size` bytes."""
    if not writer.computes_much or writer.mask_as_bits() is not None:
        return
    if any(writer.block in loop.blocks for loop in writer.divergence.graph.loops):
        return
    for start in range(0, size, _LINE):
        place = writer.new(f"getelementptr i8, ptr {address}, i64 {start + _AHEAD}")
        options = [("i32", option) for option in ("0", "3", "1")]  # to read, often, as data
        writer.call("void", "@llvm.prefetch.p0", [("ptr", place), *options])
