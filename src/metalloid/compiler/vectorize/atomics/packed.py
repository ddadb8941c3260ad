"""Atomic operations of lanes on contiguous numbers, four at a time.

A processor locks a line of memory for each of them, 20 cycles and more. Sixteen bytes can be
compared and exchanged at once, which takes little longer; if another thread modifies one of the
four numbers in the meantime, the exchange fails and is tried again.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.types import Type
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES, Builder

_EACH, _PACKED = 4, 4  # bytes of a number, and numbers that are exchanged at once
#: With zeros these change nothing, as where most counts of a histogram are none.
_IDLE_WITH_ZERO = ("add", "sub", "or", "xor")


def are_contiguous(builder: Builder, address: Value, type: Type) -> bool:
    """Whether all lanes are active, and lane after lane has the next number of four bytes."""
    if builder.mask is not None or type.size != _EACH or builder.width % _PACKED:
        return False
    offsets = builder.shape(address).offsets
    return offsets == tuple(_EACH * lane for lane in range(builder.width))


def update(builder: Builder, operation: str, type: Type, given: tuple[str, str]) -> None:
    """Write the update of numbers from an address on, by a vector."""
    name, text = function(operation, type, builder.width)
    address, vector = given
    builder.call("void", name, [("ptr", address), (builder.wide(type), vector)])
    builder.declarations[name] = text


def function(operation: str, type: Type, width: int) -> tuple[str, str]:
    """Name and text of the function that does an operation on numbers from an address on."""
    name = f"@mtl.row.{operation}.{type}"
    full, wide = f"<{width} x {type}>", f"<{_PACKED} x {type}>"
    lines = [
        f"define internal void {name}(ptr %base, {full} %given) noinline {VECTOR_ATTRIBUTES} {{",
        "entry:",
        "  %address = ptrtoint ptr %base to i64",
        f"  %misalignment = and i64 %address, {_EACH * _PACKED - 1}",
        "  %is_aligned = icmp eq i64 %misalignment, 0",
        "  br i1 %is_aligned, label %from0, label %unpacked",
    ]
    for n in range(0, width, _PACKED):
        lanes = ", ".join(f"i32 {lane}" for lane in range(n, n + _PACKED))
        lines += [
            f"from{n}:",
            f"  %at{n} = getelementptr i8, ptr %base, i64 {_EACH * n}",
            f"  %own{n} = shufflevector {full} %given, {full} poison, <{_PACKED} x i32> <{lanes}>",
        ]
        if operation in _IDLE_WITH_ZERO:
            lines += [
                f"  %number{n} = bitcast {wide} %own{n} to i128",
                f"  %is_idle{n} = icmp eq i128 %number{n}, 0",
                f"  br i1 %is_idle{n}, label %from{n + _PACKED}, label %guess{n}",
            ]
        else:
            lines.append(f"  br label %guess{n}")
        lines += [
            f"guess{n}:",
            # Only the exchange has to see all four as they are together.
            f"  %low{n} = load atomic i64, ptr %at{n} monotonic, align 8",
            f"  %high_at{n} = getelementptr i8, ptr %at{n}, i64 8",
            f"  %high{n} = load atomic i64, ptr %high_at{n} monotonic, align 8",
            f"  %half{n} = insertelement <2 x i64> poison, i64 %low{n}, i64 0",
            f"  %both{n} = insertelement <2 x i64> %half{n}, i64 %high{n}, i64 1",
            f"  %guess{n}.all = bitcast <2 x i64> %both{n} to {wide}",
            f"  br label %try{n}",
            f"try{n}:",
            f"  %old{n} = phi {wide} [ %guess{n}.all, %guess{n} ], [ %loaded{n}, %try{n} ]",
            f"  %new{n} = {operation} {wide} %old{n}, %own{n}",
            f"  %old_bits{n} = bitcast {wide} %old{n} to i128",
            f"  %new_bits{n} = bitcast {wide} %new{n} to i128",
            f"  %pair{n} = cmpxchg ptr %at{n}, i128 %old_bits{n}, i128 %new_bits{n} "
            "monotonic monotonic, align 16",
            f"  %was{n} = extractvalue {{ i128, i1 }} %pair{n}, 0",
            f"  %loaded{n} = bitcast i128 %was{n} to {wide}",
            f"  %is_done{n} = extractvalue {{ i128, i1 }} %pair{n}, 1",
            f"  br i1 %is_done{n}, label %from{n + _PACKED}, label %try{n}",
        ]
    lines += [f"from{width}:", "  ret void", "unpacked:"]
    for n in range(width):
        lines += [
            f"  %lane_address{n} = getelementptr i8, ptr %base, i64 {_EACH * n}",
            f"  %lane{n} = extractelement {full} %given, i64 {n}",
            f"  %before{n} = atomicrmw {operation} ptr %lane_address{n}, {type} %lane{n} monotonic",
        ]
    return name, "\n".join((*lines, "  ret void", "}", ""))
