"""Gathers of words that lie close together, as permutations of registers.

Lanes that sample a picture read texels close to each other, at distances that only the launch
knows. Where the indices of lanes are computed from the position of the thread, and not loaded,
AVX-512 code asks whether the words of sixteen lanes all lie within two registers, or four. If so,
it loads these registers from the word of the first lane on, and each lane picks its word; else it
gathers. Registers that end in another page than the last lane's word are not loaded: that page may
not be readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.types import I1, I32
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES, Builder
from metalloid.compiler.vectorize.memory.lane_addresses import widened_index

_LANES = 16  # of a register
_REGISTER_BYTES, _PAGE_BYTES = 64, 4096
WORD_BYTES = 4
_PERMUTATION = "@llvm.x86.avx512.vpermi2var.d.512"
#: Elements of so many bytes or more get four registers rather than two.
_LARGE_ELEMENT = 16
#: Instructions that are looked at to find out what an index is computed from.
_MAX_STEPS = 200
#: What may give any number to each lane.
_UNPREDICTABLE = ("load", "call", "atomicrmw", "cmpxchg", "extractvalue")
#: What has terms as operands.
_SUMS = ("add", "sub", "or", "sext", "zext", "trunc", "phi", "select")


@dataclass(frozen=True)
class NearAddresses:
    """Addresses that may lie close together.

    Attributes
    ----------
    base : str
        A scalar pointer.
    index : str
        A vector of 32 bits, which is widened.
    widening : str
        ``"sext"`` or ``"zext"``.
    size : int
        What it is multiplied by: 1, or a multiple of a word.
    """

    base: str
    index: str
    widening: str
    size: int


def near_addresses(builder: Builder, address: Value) -> NearAddresses | None:
    """Addresses in terms of the position of the thread; None if they are not.

    Nor are they of use unless all lanes are active, on a processor that permutes two registers.
    """
    if builder.mask_type != I1 or builder.width % _LANES or builder.mask_as_bits() is not None:
        return None
    terms = widened_index(builder, address)
    if terms is None:
        return None
    base, distance, widening, size = terms
    [narrow] = widening.operands
    if narrow.type != I32 or (size > 1 and size % WORD_BYTES) or not _is_computed(builder, narrow):
        return None
    start = builder.new(f"getelementptr i8, ptr {builder.scalar(base)}, i64 {distance}")
    while widening.op == "sext" and (split := _uniform_term(builder, narrow)):
        # What lanes share goes to the base, so that the rest is the same in several rows.
        shared, narrow = split
        far = builder.new(f"sext i32 {builder.scalar(shared)} to i64")
        start = builder.new(f"getelementptr [{size} x i8], ptr {start}, i64 {far}")
    return NearAddresses(start, builder.vector(narrow), widening.op, size)


def _uniform_term(builder: Builder, index: Value) -> tuple[Value, Value] | None:
    """The term of a sum that all lanes share, and the other."""
    inst = builder.instruction_here(index)
    if inst is None or inst.op != "add" or "nsw" not in inst.flags:
        return None
    for shared, other in (inst.operands, inst.operands[::-1]):
        if builder.is_uniform(shared) and not builder.is_uniform(other):
            return shared, other
    return None


def _is_computed(builder: Builder, index: Value) -> bool:
    """Whether an index follows from the position of the thread, at small distances or any."""
    todo, seen = [(index, True)], set()
    while todo:
        value, is_term = todo.pop()
        inst = builder.computed_by.get(value.name)
        if inst is None or value.name in seen or builder.own_shape(inst.value).is_uniform:
            continue
        seen.add(value.name)
        is_intrinsic = inst.op == "call" and inst.callee.startswith("@llvm.")
        if len(seen) > _MAX_STEPS or (inst.op in _UNPREDICTABLE and not is_intrinsic):
            return False
        if is_term and inst.op == "mul" and not any(v.is_constant for v in inst.operands):
            return False  # a distance that the launch gives, as of rows
        todo += ((operand, is_term and inst.op in _SUMS) for operand in inst.operands)
    return True


def gather_near(builder: Builder, addresses: NearAddresses, unaligned: str = "") -> str:
    """The words at some addresses.

    Parameters
    ----------
    unaligned : str, optional
        A scalar of less than a word that is added to all indices. With it the base is aligned as
        words are, and the words are those that the addresses lie in.
    """
    wide = builder.wide(I32)
    name = f"@mtl.gather.near.{addresses.widening}.{addresses.size}"
    given = [("ptr", addresses.base), (wide, addresses.index)]
    if unaligned:
        name += ".aligned"
        given.append(("i32", unaligned))
    gathered = builder.call(wide, name, given)
    builder.declarations.update(_declarations(builder.width))
    lines = _definition(name, builder.width, addresses.widening, addresses.size, bool(unaligned))
    builder.declarations[name] = "\n".join(lines)
    return gathered


def _declarations(width: int) -> dict[str, str]:
    """Declarations of the intrinsics that the function calls."""
    wide, row = f"<{width} x i32>", f"<{_LANES} x i32>"
    given = {
        _PERMUTATION: (row, f"{row}, {row}, {row}"),
        f"@llvm.fshl.v{_LANES}i32": (row, f"{row}, {row}, {row}"),
        f"@llvm.masked.gather.v{width}i32.v{width}p0": (
            wide, f"<{width} x ptr>, <{width} x i1>, {wide}",
        ),
    }  # fmt: skip
    return {name: f"declare {inst} {name}({types})" for name, (inst, types) in given.items()}


def _definition(
    name: str, width: int, widening: str, size: int, are_aligned: bool
) -> Iterator[str]:
    """The function, for addresses at `size` times an index from the first parameter."""
    registers = 4 if size >= _LARGE_ELEMENT else 2
    wide, row = f"<{width} x i32>", f"<{_LANES} x i32>"
    longs, pointers = f"<{width} x i64>", f"<{width} x ptr>"
    chunks = range(width // _LANES)
    more = ", i32 %unaligned" if are_aligned else ""
    yield f"define internal {wide} {name}(ptr %base, {wide} %given{more}) alwaysinline"
    yield f"  {VECTOR_ATTRIBUTES} {{"
    if are_aligned:
        yield from _splat("%rest", "%unaligned", wide, "i32")
        yield f"  %moved = add {wide} %given, %rest"
        yield f"  %index = and {wide} %moved, splat (i32 -{WORD_BYTES})"
    else:
        yield f"  %index = freeze {wide} %given"
    for n in chunks:
        yield from _is_near(n, width, widening, size, registers)
    for n in chunks[1:]:
        before = f"%obstacles{n - 1}" if n > 1 else "%obstacle0"
        yield f"  %obstacles{n} = or i32 {before}, %obstacle{n}"
    last = f"%obstacles{chunks[-1]}" if len(chunks) > 1 else "%obstacle0"
    yield f"  %are_near = icmp eq i32 {last}, 0"
    yield "  br i1 %are_near, label %near, label %far"
    yield "near:"
    for n in chunks:
        yield from _picked(n, registers)
    gathered = "%got0"
    if len(chunks) > 1:
        order = ", ".join(f"i32 {lane}" for lane in range(width))
        yield f"  %joined = shufflevector {row} %got0, {row} %got1, {wide} <{order}>"
        gathered = "%joined"
    yield "  br label %end"
    yield "far:"
    yield f"  %longs = {widening} {wide} %given to {longs}"
    if are_aligned:
        yield "  %long = zext i32 %unaligned to i64"
        yield from _splat("%rests", "%long", longs, "i64")
        yield f"  %sums = add {longs} %longs, %rests"
        yield f"  %steps = and {longs} %sums, splat (i64 -{WORD_BYTES})"
    else:
        yield f"  %steps = freeze {longs} %longs"
    yield f"  %addresses = getelementptr [{size} x i8], ptr %base, {longs} %steps"
    yield (
        f"  %gathered = call {wide} @llvm.masked.gather.v{width}i32.v{width}p0("
        f"{pointers} align 1 %addresses, <{width} x i1> splat (i1 true), {wide} poison)"
    )
    yield "  br label %end"
    yield "end:"
    yield f"  %result = phi {wide} [ {gathered}, %near ], [ %gathered, %far ]"
    yield f"  ret {wide} %result"
    yield "}"


def _splat(result: str, scalar: str, wide: str, type: str) -> Iterator[str]:
    yield f"  {result}.one = insertelement {wide} poison, {type} {scalar}, i64 0"
    count = wide[1:].split(" ")[0]
    yield (
        f"  {result} = shufflevector {wide} {result}.one, {wide} poison, "
        f"<{count} x i32> zeroinitializer"
    )


def _is_near(n: int, width: int, widening: str, size: int, registers: int) -> Iterator[str]:
    """The condition under which words of register `n` are not loaded from ``%from{n}`` on.

    It is ``%obstacle{n}``, zero if there is nothing. As one number, for LLVM would make a branch of
    each condition.
    """
    wide, row, bits = f"<{width} x i32>", f"<{_LANES} x i32>", f"<{_LANES} x i1>"
    span = registers * _REGISTER_BYTES
    first, last = n * _LANES, n * _LANES + _LANES - 1
    lanes = ", ".join(f"i32 {lane}" for lane in range(first, last + 1))
    yield f"  %chunk{n} = shufflevector {wide} %index, {wide} poison, {row} <{lanes}>"
    yield f"  %least{n} = extractelement {wide} %index, i64 {first}"
    yield from _splat(f"%all{n}", f"%least{n}", row, "i32")
    yield f"  %after{n} = sub {row} %chunk{n}, %all{n}"
    if size == 1:  # bytes: what is no multiple of a word becomes large
        yield (
            f"  %word{n} = call {row} @llvm.fshl.v{_LANES}i32({row} %after{n}, {row} %after{n},"
            f" {row} splat (i32 30))"
        )
        limit, tested = span // WORD_BYTES, f"%word{n}"
    else:
        yield f"  %word{n} = mul {row} %after{n}, splat (i32 {size // WORD_BYTES})"
        limit, tested = -(-span // size), f"%after{n}"
    yield f"  %long{n} = icmp uge {row} {tested}, splat (i32 {limit})"
    yield f"  %bits{n} = bitcast {bits} %long{n} to i{_LANES}"
    yield f"  %outside{n} = zext i{_LANES} %bits{n} to i32"
    yield f"  %step{n} = {widening} i32 %least{n} to i64"
    yield f"  %from{n} = getelementptr [{size} x i8], ptr %base, i64 %step{n}"
    # The end of the registers is in the page of the last lane's word, or else it may be nowhere.
    yield f"  %number{n} = ptrtoint ptr %from{n} to i32"
    yield f"  %last{n} = extractelement {row} %word{n}, i64 {_LANES - 1}"
    yield f"  %bytes{n} = shl i32 %last{n}, {WORD_BYTES.bit_length() - 1}"
    yield f"  %last_byte{n} = add i32 %number{n}, %bytes{n}"
    yield f"  %end{n} = add i32 %number{n}, {span - 1}"
    yield f"  %differing{n} = xor i32 %last_byte{n}, %end{n}"
    yield f"  %pages{n} = and i32 %differing{n}, {-_PAGE_BYTES}"
    # An index so large that another may have wrapped.
    yield f"  %available{n} = sub i32 {2**31 - 1 - span}, %least{n}"
    yield f"  %wraps{n} = and i32 %available{n}, {-(2**31)}"
    yield f"  %either{n} = or i32 %pages{n}, %wraps{n}"
    yield f"  %obstacle{n} = or i32 %outside{n}, %either{n}"


def _picked(n: int, registers: int) -> Iterator[str]:
    """The words of register `n`: ``%got{n}``."""
    row = f"<{_LANES} x i32>"
    for r in range(registers):
        yield f"  %at{n}.{r} = getelementptr i8, ptr %from{n}, i64 {r * _REGISTER_BYTES}"
        yield f"  %row{n}.{r} = load {row}, ptr %at{n}.{r}, align 1"
    for r in range(0, registers, 2):
        yield (
            f"  %pick{n}.{r} = call {row} {_PERMUTATION}("
            f"{row} %row{n}.{r}, {row} %word{n}, {row} %row{n}.{r + 1})"
        )
    if registers > 2:
        yield f"  %small{n} = icmp ult {row} %word{n}, splat (i32 {2 * _LANES})"
        picks = f"{row} %pick{n}.0, {row} %pick{n}.2"
        yield f"  %got{n} = select <{_LANES} x i1> %small{n}, {picks}"
    else:
        yield f"  %got{n} = freeze {row} %pick{n}.0"
