"""Atomic operations of lanes on numbers side by side, four at a time.

A processor locks a line of memory for each of them, 20 cycles and more. Sixteen bytes can be
compared and exchanged at once, which takes little longer; whoever uses one of the four numbers in
the meantime makes the exchange fail, and it is tried again.
"""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Value
from metalloid.compiler.llvm.types import Type
from metalloid.compiler.spmd.writer import Writer

_EACH, _TOGETHER = 4, 4  # bytes of a number, and numbers that are exchanged at once
#: With zeros these change nothing, as where most counts of a histogram are none.
_IDLE_WITH_ZERO = ("add", "sub", "or", "xor")


def are_side_by_side(writer: Writer, address: Value, type: Type) -> bool:
    """Whether all lanes are active, and lane after lane has the next number of four bytes."""
    if writer.mask is not None or type.size != _EACH or writer.width % _TOGETHER:
        return False
    offsets = writer.shape(address).offsets
    return offsets == tuple(_EACH * lane for lane in range(writer.width))


def update(writer: Writer, operation: str, address: Value, value: Value) -> tuple[str, str]:
    """Do an operation of vectors, if the memory is aligned.

    Returns
    -------
    tuple of str
        Labels: of where to go on if it is not, which the caller writes, and behind that.
    """
    type, base = value.type, writer.scalar(address)
    vector, wide = writer.vector(value), f"<{_TOGETHER} x {type}>"
    name = writer.fresh_label("row")
    place = writer.new(f"ptrtoint ptr {base} to i64")
    beyond = writer.new(f"and i64 {place}, {_EACH * _TOGETHER - 1}")
    is_aligned = writer.new(f"icmp eq i64 {beyond}, 0")
    writer.emit(f"br i1 {is_aligned}, label %{name}.from0, label %{name}.apart")
    for first in range(0, writer.width, _TOGETHER):
        here, again = f"{name}.guess{first}", f"{name}.try{first}"
        after = first + _TOGETHER
        following = f"{name}.from{after}" if after < writer.width else f"{name}.done"
        writer.label(f"{name}.from{first}")
        at = writer.new(f"getelementptr i8, ptr {base}, i64 {_EACH * first}")
        lanes = ", ".join(f"i32 {lane}" for lane in range(first, after))
        own = writer.new(
            f"shufflevector {writer.wide(type)} {vector}, {writer.wide(type)} poison, "
            f"<{_TOGETHER} x i32> <{lanes}>"
        )
        if operation in _IDLE_WITH_ZERO:
            number = writer.new(f"bitcast {wide} {own} to i128")
            is_idle = writer.new(f"icmp eq i128 {number}, 0")
            writer.emit(f"br i1 {is_idle}, label %{following}, label %{here}")
        else:
            writer.emit(f"br label %{here}")
        writer.label(here)
        # A guess: only the exchange has to see all four as they are together.
        low = writer.new(f"load atomic i64, ptr {at} monotonic, align 8")
        at_high = writer.new(f"getelementptr i8, ptr {at}, i64 8")
        high = writer.new(f"load atomic i64, ptr {at_high} monotonic, align 8")
        half = writer.new(f"insertelement <2 x i64> poison, i64 {low}, i64 0")
        whole = writer.new(f"insertelement <2 x i64> {half}, i64 {high}, i64 1")
        guess = writer.new(f"bitcast <2 x i64> {whole} to {wide}")
        writer.emit(f"br label %{again}")
        writer.label(again)
        found = f"%{writer.fresh_label('found')}"
        old = writer.new(f"phi {wide} [ {guess}, %{here} ], [ {found}, %{again} ]")
        new = writer.new(f"{operation} {wide} {old}, {own}")
        bits = [writer.new(f"bitcast {wide} {each} to i128") for each in (old, new)]
        both = writer.new(
            f"cmpxchg ptr {at}, i128 {bits[0]}, i128 {bits[1]} monotonic monotonic, align 16"
        )
        was = writer.new(f"extractvalue {{ i128, i1 }} {both}, 0")
        writer.emit(f"{found} = bitcast i128 {was} to {wide}")
        is_done = writer.new(f"extractvalue {{ i128, i1 }} {both}, 1")
        writer.emit(f"br i1 {is_done}, label %{following}, label %{again}")
    return f"{name}.apart", f"{name}.done"
