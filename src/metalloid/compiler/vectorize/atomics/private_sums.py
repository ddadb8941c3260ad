"""Additions to copies of buffers (`buffer_privatization`), as plain vector code.

Nothing reads a copy, so the additions of a block may be done in any order, together with the last
one. Those to members of adjacent elements (``d[4 * i]`` ... ``d[4 * i + 3]``) become one wide
addition, those to one address are summed first, and the lanes of up to eight values that each go to
one address are summed at the same time. Products that are only added are multiplied and added at
once, without rounding between. Addresses of which nothing is known are compared when the
code runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metalloid.compiler.analysis.addresses import Root, root_of
from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.opcodes import ONE_THREAD
from metalloid.compiler.ir.types import FLOAT, I1, I64
from metalloid.compiler.vectorize.atomics.buffer_privatization import is_sum
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory import accesses
from metalloid.compiler.vectorize.memory.interleave_groups import interleave, member_mask
from metalloid.compiler.vectorize.permute import active_or, shuffled

_MAX_MEMBERS = 16
_MAX_TOTALS = 8
#: Lanes of the widest registers.
_LANES_OF_REGISTERS = 16
#: Lanes of the halves of a register between which moves take longer.
_HALF = 4


@dataclass(eq=False)
class SumGroup:
    """Additions that are done together.

    Attributes
    ----------
    stride : int
        Bytes from the address of a lane to that of the next one.
    members : list of list
        Additions by address, in the order of addresses if `stride` is not 0.
    last : Instruction
        The one that is done last.
    """

    stride: int
    members: list[list[Instruction]]
    last: Instruction


def find_sums(divergence: Divergence) -> dict[Instruction, tuple[SumGroup, int]]:
    """The group, and the number of the member, of each addition that has one."""
    computed_by = {i.result: i for i in divergence.function.instructions() if i.result}
    used = {value.name for i in divergence.function.instructions() for value in i.operands}
    groups = {}
    for block in divergence.function.blocks.values():
        sums = [i for i in block.body if _is_plain(i) and i.result not in used]
        for group in _groups_of(sums, block.name, divergence, computed_by):
            for number, member in enumerate(group.members):
                groups.update(dict.fromkeys(member, (group, number)))
    return groups


def _is_plain(instruction: Instruction) -> bool:
    """Whether it adds to a copy that one thread of the operating system has."""
    return is_sum(instruction) and ONE_THREAD in instruction.ordering


def _groups_of(
    sums: Sequence[Instruction],
    block: str,
    divergence: Divergence,
    computed_by: dict[str, Instruction],
) -> Iterator[SumGroup]:
    position = {each: number for number, each in enumerate(sums)}
    totals: list[Instruction] = []
    rows: dict[tuple[Root, int], dict[int, list[Instruction]]] = {}
    for each in sums:
        stride = divergence.shape(each.operands[0], block).stride
        if stride == 0:
            totals.append(each)
        elif stride is not None:
            root, offset = root_of(each.operands[0], computed_by)
            rows.setdefault((root, stride), {}).setdefault(offset, []).append(each)
    at_once = min(_MAX_TOTALS, divergence.width)
    for first in range(0, len(totals) - 1, at_once):
        members = [[each] for each in totals[first : first + at_once]]
        yield SumGroup(0, members, members[-1][0])
    for (_, stride), by_offset in rows.items():
        for members in _complete(by_offset, stride):
            if len(members) > 1 or len(members[0]) > 1:
                additions = [each for member in members for each in member]
                yield SumGroup(stride, members, max(additions, key=position.__getitem__))


def _complete(
    by_offset: dict[int, list[Instruction]], stride: int
) -> Iterator[list[list[Instruction]]]:
    """Members that fill elements of `stride` bytes without gaps."""
    count = stride // FLOAT.size
    if stride % FLOAT.size or not 1 <= count <= _MAX_MEMBERS:
        return
    left = sorted(by_offset)
    while left:
        offsets = [left[0] + FLOAT.size * number for number in range(count)]
        if set(offsets) <= set(left):
            yield [by_offset[offset] for offset in offsets]
            left = [offset for offset in left if offset not in offsets]
        else:
            left = left[1:]


# ---- writing -------------------------------------------------------------------------------------


def add_plainly(builder: Builder, instruction: Instruction) -> bool:
    """Write an addition of one thread of the operating system for all lanes at once.

    Returns
    -------
    bool
        False if lanes may add to the same address, and nothing was written.
    """
    if not _is_plain(instruction) or builder.uses[instruction.result]:
        return False
    group, _ = builder.groups.get(instruction, (None, 0))
    if isinstance(group, SumGroup):
        if instruction is group.last:
            _add_group(builder, group)
        return True
    address, value = instruction.operands
    offsets = builder.shape(address).offsets
    if offsets is None:
        _add_to_any(builder, instruction)
        return True
    if builder.is_uniform(address):
        _add_totals(builder, [instruction])
        return True
    if min(b - a for a, b in zip(sorted(offsets), sorted(offsets)[1:], strict=False)) < FLOAT.size:
        return False
    _add_row(builder, address, _Term.of(builder, value))
    return True


def _add_group(builder: Builder, group: SumGroup) -> None:
    if group.stride == 0:
        _add_totals(builder, [each for member in group.members for each in member])
        return
    members = [[each.operands[1] for each in member] for member in group.members]
    lowest = group.members[0][0].operands[0]
    if len(members) > 1:
        _add_members(builder, lowest, [_sum_of(builder, member) for member in members])
    elif len(members[0]) == 1:
        _add_row(builder, lowest, _Term.of(builder, members[0][0]))
    else:
        _add_row(builder, lowest, _Term(_sum_of(builder, members[0])))


class _Term(NamedTuple):
    """A vector that is added, or the factors of one."""

    vector: str
    factors: tuple[str, str] | None = None

    @classmethod
    def of(cls, builder: Builder, value: Value) -> _Term:
        product = builder.computed_by.get(value.name)
        is_only_added = (
            product is not None
            and product.op == "fmul"
            and builder.uses[value.name] == 1
            and value.name not in builder.live_out  # its factors are values of this block, too
            and builder.shape(value).offsets is None
        )
        if product is None or not is_only_added:
            return cls(builder.vector(value))
        first, second = map(builder.vector, product.operands)
        return cls(builder.vector(value), (first, second))

    def plus(self, builder: Builder, other: str, lanes: int) -> str:
        """The sum of this and another vector."""
        wide = f"<{lanes} x {FLOAT}>"
        if self.factors is None:
            return builder.new(f"fadd {wide} {other}, {self.vector}")
        given = [(wide, each) for each in (*self.factors, other)]
        return builder.call(wide, f"@llvm.fmuladd.v{lanes}f32", given)

    def half(self, builder: Builder, lanes: int, first: int) -> _Term:
        """The `lanes` lanes from one on, of twice as many."""
        wide, chosen = f"<{2 * lanes} x {FLOAT}>", range(first, first + lanes)
        if self.factors is None:
            return _Term(shuffled(builder, wide, self.vector, "poison", chosen))
        low, high = (shuffled(builder, wide, each, "poison", chosen) for each in self.factors)
        product = builder.new(f"fmul <{lanes} x {FLOAT}> {low}, {high}")
        return _Term(product, (low, high))

    def folded(self, builder: Builder, lanes: int) -> _Term:
        """The sum of both halves of twice as many lanes."""
        low, high = (self.half(builder, lanes, first) for first in (0, lanes))
        return _Term(high.plus(builder, low.vector, lanes))


def _sum_of(builder: Builder, values: Sequence[Value]) -> str:
    total = builder.vector(values[0])
    for other in values[1:]:
        total = _Term.of(builder, other).plus(builder, total, builder.width)
    return total


def _add_row(builder: Builder, address: Value, term: _Term) -> None:
    """Add to an address of each lane; they are `FLOAT.size` or more apart."""
    loaded = _new(builder, Instruction("load", operands=[address], align=FLOAT.size))
    accesses.HANDLERS["load"](builder, loaded)
    total = _new(builder, Instruction("fadd"))
    builder.set(total, vector=term.plus(builder, builder.vector(loaded.value), builder.width))
    stored = Instruction("store", operands=[total.value, address], align=FLOAT.size)
    accesses.HANDLERS["store"](builder, stored)


def _add_to_any(builder: Builder, instruction: Instruction) -> None:
    """Add to addresses that are compared when it runs: often they are the same, or adjacent."""
    address, value = instruction.operands
    names = ("checked", "uniform_or_row", "same", "row", "scatter", "done")
    checked, uniform_or_row, same, row, scatter, done = map(builder.fresh_label, names)
    with builder.aside():
        addresses = _Addresses(builder, address)
        builder.cond_br(addresses.is_candidate, checked, scatter)
        builder.label(checked)
        builder.cond_br(addresses.all_match(), uniform_or_row, scatter)
        builder.label(uniform_or_row)
        vector = builder.vector(value)
        builder.cond_br(addresses.is_same, same, row)
        builder.label(same)
        [total] = _totals(builder, [_Term(active_or(builder, vector, "-0.0", FLOAT))])
        _add_contiguous(builder, addresses.first, total, 1)
        builder.br(done)
        builder.label(row)
        _add_contiguous(builder, addresses.first, vector, builder.width)
        builder.br(done)
    with builder.aside():
        builder.label(scatter)
        accesses.HANDLERS["atomicrmw"](builder, instruction)
        builder.br(done)
    builder.label(done)


class _Addresses:
    """The addresses of a simdgroup; the first and the last active lane's are compared at once.

    Attributes
    ----------
    first : str
        The address of the first active lane.
    is_same, is_candidate : str
        Whether these are the same, and whether they are or all lanes may be adjacent.
    """

    def __init__(self, builder: Builder, address: Value) -> None:
        self._builder, width = builder, builder.width
        self._wide, self._bits = f"<{width} x i64>", f"i{width}"
        vector = builder.new(f"freeze <{width} x ptr> {builder.vector(address)}")
        self._integers = builder.new(f"ptrtoint <{width} x ptr> {vector} to {self._wide}")
        bits, self._active = builder.mask_as_bits(), ""
        first, last = "0", str(width - 1)
        if bits is not None:
            self._active = builder.bits_as_integer(bits)
            first, last = self._inactive("cttz"), self._inactive("ctlz")
            last = builder.new(f"sub {self._bits} {width - 1}, {last}")
        self._integer, end = (
            builder.new(f"extractelement {self._wide} {self._integers}, {self._bits} {lane}")
            for lane in (first, last)
        )
        self.first = builder.new(f"inttoptr i64 {self._integer} to ptr")
        distance = builder.new(f"sub i64 {end}, {self._integer}")
        self.is_same = builder.new(f"icmp eq i64 {distance}, 0")
        is_row = builder.new(f"icmp eq i64 {distance}, {(width - 1) * FLOAT.size}")
        if self._active:  # masked stores are slow
            is_full = builder.new(f"icmp eq {self._bits} {self._active}, -1")
            is_row = builder.new(f"and i1 {is_row}, {is_full}")
        self.is_candidate = builder.new(f"or i1 {self.is_same}, {is_row}")

    def _inactive(self, function: str) -> str:
        """The inactive lanes before the first active lane, or after the last one."""
        some = 1 << self._builder.width - 1 if function == "cttz" else 1  # if no lane is active
        filled = self._builder.new(f"or {self._bits} {self._active}, {some}")
        given = [(self._bits, filled), ("i1", "true")]
        return self._builder.call(self._bits, f"@llvm.{function}.{self._bits}", given)

    def all_match(self) -> str:
        """Whether all active lanes have the same address, or all lanes are adjacent."""
        builder, wide = self._builder, self._wide
        step = builder.new(f"select i1 {self.is_same}, i64 0, i64 {FLOAT.size}")
        numbers = builder.constants(I64, range(builder.width))
        distances = builder.new(f"mul {wide} {numbers}, {builder.splat(step, I64)}")
        first = builder.splat(self._integer, I64)
        expected = builder.new(f"add {wide} {first}, {distances}")
        matching = builder.bits_as_integer(
            builder.new(f"icmp eq {wide} {self._integers}, {expected}")
        )
        if not self._active:
            return builder.new(f"icmp eq {self._bits} {matching}, -1")
        matching = builder.new(f"and {self._bits} {matching}, {self._active}")
        all_ = builder.new(f"icmp eq {self._bits} {matching}, {self._active}")
        any_ = builder.new(f"icmp ne {self._bits} {self._active}, 0")
        return builder.new(f"and i1 {all_}, {any_}")


def _new(builder: Builder, instruction: Instruction) -> Instruction:
    instruction.result, instruction.type = f"%{builder.fresh_label('private')}", FLOAT
    return instruction


def _add_members(builder: Builder, lowest: Value, vectors: Sequence[str]) -> None:
    """Add to all members of the lanes' elements, which are adjacent."""
    count = len(vectors) * builder.width
    wide, address = f"<{count} x {FLOAT}>", builder.scalar(lowest)
    added, bits = interleave(builder, vectors, FLOAT), builder.mask_as_bits()
    if bits is None:
        _add_contiguous(builder, address, added, count)
        return
    mask = f"<{count} x {I1}>", member_mask(builder, len(vectors), len(vectors), bits)
    pointer, suffix = (f"ptr align {FLOAT.size}", address), f"v{count}f32.p0"
    given = [pointer, mask, (wide, "zeroinitializer")]
    old = builder.call(wide, f"@llvm.masked.load.{suffix}", given)
    total = builder.new(f"fadd {wide} {old}, {added}")
    builder.call("void", f"@llvm.masked.store.{suffix}", [(wide, total), pointer, mask])


def _add_contiguous(builder: Builder, address: str, added: str, count: int) -> None:
    wide = f"<{count} x {FLOAT}>" if count > 1 else str(FLOAT)
    old = builder.new(f"load {wide}, ptr {address}, align {FLOAT.size}")
    total = builder.new(f"fadd {wide} {old}, {added}")
    builder.emit(f"store {wide} {total}, ptr {address}, align {FLOAT.size}")


def _add_totals(builder: Builder, sums: Sequence[Instruction]) -> None:
    """Add what all active lanes add to one address, for several of these."""
    terms = [_Term.of(builder, each.operands[1]) for each in sums]
    if builder.mask_as_bits() is not None:
        terms = [_Term(active_or(builder, each.vector, "-0.0", FLOAT)) for each in terms]
    for total, each in zip(_totals(builder, terms), sums, strict=True):
        _add_contiguous(builder, builder.scalar(each.operands[0]), total, 1)


def _totals(builder: Builder, terms: Sequence[_Term]) -> Iterator[str]:
    """The sum of the lanes of each vector."""
    lanes, count = builder.width, 1
    if len(terms) == 1:
        term = terms[0]
        if term.factors is not None and lanes > _LANES_OF_REGISTERS:
            lanes //= 2
            term = term.folded(builder, lanes)
        callee = f"@llvm.vector.reduce.fadd.v{lanes}f32"
        given = [(str(FLOAT), "-0.0"), (f"<{lanes} x {FLOAT}>", term.vector)]
        yield builder.call(f"reassoc {FLOAT}", callee, given)
        return
    # Processors with registers of masks move halves of wide registers as well as of others.
    limit = _LANES_OF_REGISTERS if builder.mask_type == I1 else 2 * _HALF
    folded = list(terms)
    while lanes > limit:
        lanes //= 2
        folded = [each.folded(builder, lanes) for each in folded]
    components = [each.vector for each in folded]
    while len(components) & len(components) - 1:
        components.append(f"splat ({FLOAT} -0.0)")
    while len(components) > 1:
        pairs = zip(components[::2], components[1::2], strict=True)
        components = [_merged(builder, *pair, lanes, count) for pair in pairs]
        count *= 2
    while lanes > count:
        lanes //= 2
        components = [_Term(components[0]).folded(builder, lanes).vector]
    for number in range(len(terms)):
        yield builder.new(f"extractelement <{lanes} x {FLOAT}> {components[0]}, i64 {number}")


def _merged(builder: Builder, first: str, second: str, lanes: int, count: int) -> str:
    """From two vectors that repeat `count` partial sums, one that repeats those of both."""
    repeats = lanes // count
    step = max(_HALF // count, 2)  # within halves, as long as these have several
    low = [n for n in range(repeats) if n % step < step // 2]
    high = [n for n in range(repeats) if n % step >= step // 2]
    wide = f"<{lanes} x {FLOAT}>"
    sources = (
        [
            vector + repeat * count + lane
            for repeat in chosen
            for vector in (0, lanes)
            for lane in range(count)
        ]
        for chosen in (low, high)
    )
    one, other = (shuffled(builder, wide, first, second, each) for each in sources)
    return builder.new(f"fadd {wide} {one}, {other}")
