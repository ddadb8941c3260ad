"""Check that accesses of memory are inside of the object that they are made for.

An access whose check fails ends the launch: the check branches to a block that reports the *site*,
by number, and the offset in bytes. It is the form of a failed assertion, which vector code tests
without masks (`transforms.assertions`)::

    %inside = icmp ult i32 %index, %limit
    br i1 %inside, label %after, label %mtl.outside

Accesses are checked by sites (`sites`).
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.compiler.bounds.objects import Addresses, Interface, MemoryObject
from metalloid.compiler.bounds.sites import Site
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32, I64, POINTER, Integer, Type
from metalloid.compiler.transforms.assertions import OUTSIDE

_OUTSIDE_BLOCK = "%mtl.outside"
_WORD_BYTES = 8


def check_accesses(
    function: Function,
    addresses: Addresses,
    interface: Interface,
    sites: Sequence[tuple[int, Site]],
) -> None:
    """Insert the checks of sites with these numbers."""
    if sites:
        _Inserter(function, addresses, interface).insert(sites)


class _Inserter:
    def __init__(self, function: Function, addresses: Addresses, interface: Interface) -> None:
        self._function, self._addresses, self._interface = function, addresses, interface
        self._prologue: list[Instruction] = []
        self._limits: dict[object, Value] = {}
        self._words = self._pointer_to_words()

    def insert(self, checked: Sequence[tuple[int, Site]]) -> None:
        function = self._function
        number = Instruction("phi", "%mtl.site", I32)
        offset = Instruction("phi", "%mtl.outside.offset", I64)
        extent = Instruction("phi", "%mtl.outside.extent", I64)
        outside = Block(_OUTSIDE_BLOCK, [number, offset, extent])
        reported = [phi.value for phi in outside.phis]
        outside.body.append(Instruction("call", operands=reported, callee=OUTSIDE))
        by_block: dict[str, list[tuple[int, Site]]] = {}
        for each in checked:
            by_block.setdefault(each[1].block, []).append(each)
        blocks: dict[str, Block] = {}
        for name, block in function.blocks.items():
            pieces = self._split(block, by_block[name], outside) if name in by_block else [block]
            blocks.update((piece.name, piece) for piece in pieces)
        blocks[_OUTSIDE_BLOCK] = outside
        function.blocks = blocks
        self._insert_prologue()

    def _split(self, block: Block, sites: list[tuple[int, Site]], outside: Block) -> list[Block]:
        """The pieces of a block, between which there are checks."""
        first, pieces = block.name, [block]
        at: dict[Instruction, list[tuple[int, Site]]] = {}
        for each in sites:
            at.setdefault(each[1].at, []).append(each)
        body, block.body = block.body, []
        end, block.end = block.end, Instruction("unreachable")
        names = self._addresses.names
        for instruction in body:
            for number, site in at.get(instruction, ()):
                inside, offset = self._check(site, block.body)
                after = names(f"{first}.inside")
                block.end = Instruction("br", operands=[inside], labels=[after, outside.name])
                reported = (Value(I32, str(number)), offset, self._extent(site.object))
                for phi, value in zip(outside.phis, reported, strict=True):
                    phi.operands.append(value)
                    phi.labels.append(block.name)
                block = Block(after)
                pieces.append(block)
            block.body.append(instruction)
        block.end = end
        if block.name != first:
            for successor in dict.fromkeys(end.labels):
                replace_predecessor(self._function.blocks[successor], first, block.name)
        return pieces

    def _new(self, body: list[Instruction], op: str, type: Integer, *operands: Value,
             predicate: str = "") -> Value:  # fmt: skip
        name = self._addresses.names("%mtl.check")
        body.append(Instruction(op, name, type, [*operands], predicate=predicate))
        return body[-1].value

    def _check(self, site: Site, body: list[Instruction]) -> tuple[Value, Value]:
        """Whether a site's accesses are inside, and its offset for the report."""
        first, end = site.first, site.end
        if not site.terms:
            fits = self._limit(site.object, end, 1, 2**63)
            inside = self._new(body, "icmp", I1, Value(I64, "0"), fits, predicate="ult")
            return (inside if first >= 0 else Value(I1, "false")), Value(I64, "0")
        if len(site.terms) == 1 and site.terms[0][1] > 0 and first >= 0:
            [(index, size)] = site.terms
            narrow, is_unsigned = self._narrow(index)
            if is_unsigned or first < size:
                # An unsigned index of 2^32 - 1 is refused even where there are as many elements.
                largest = 2**63 if narrow.type == I64 else 2**32 - 1 if is_unsigned else 2**31
                limit = self._limit(site.object, end, size, largest)
                inside = self._new(
                    body, "icmp", I1, narrow, self._truncated(limit, narrow.type), predicate="ult"
                )
                return inside, self._addresses.materialize(site.terms, 0, body)
        offset = self._addresses.materialize(site.terms, first, body)
        limit = self._limit(site.object, end - first, 1, 2**63)
        inside = self._new(body, "icmp", I1, offset, limit, predicate="ult")
        return inside, self._addresses.materialize(site.terms, 0, body)

    def _narrow(self, index: Value) -> tuple[Value, bool]:
        """An index before it was extended, and whether it is never negative."""
        if index.type.size < 8:
            return index, False
        step = self._addresses.computed_by(index)
        if step is not None and step.op in ("zext", "sext") and step.operands[0].type == I32:
            return step.operands[0], step.op == "zext"
        return index, False

    # -- limits, computed once at the beginning

    def _pointer_to_words(self) -> Value:
        position, distance = self._interface.words
        parameter = self._function.parameters[position]
        if distance < 0:
            return parameter
        address = Instruction(
            "getelementptr", self._addresses.names("%mtl.words.at"), POINTER,
            [parameter, Value(I64, str(distance))], source=Integer(8),
        )  # fmt: skip
        load = Instruction(
            "load", self._addresses.names("%mtl.words"), POINTER, [address.value], align=8
        )
        self._prologue += [address, load]
        return load.value

    def _insert_prologue(self) -> None:
        body = self._function.entry.body
        # After allocas, so that they stay static.
        at = next((n for n, i in enumerate(body) if i.op != "alloca"), len(body))
        body[at:at] = self._prologue

    def _limit(self, target: MemoryObject, end: int, size: int, largest: int) -> Value:
        """The number of indices with which an access that ends at `end` is inside."""
        key = (target, end, size, largest)
        if key not in self._limits:
            self._limits[key] = self._new_limit(target, end, size, largest)
        return self._limits[key]

    def _new_limit(self, target: MemoryObject, end: int, size: int, largest: int) -> Value:
        if target.word < 0:
            known = (target.nbytes - end) // size + 1 if target.nbytes >= end else 0
            return Value(I64, str(min(known, largest)))
        extent = self._extent(target)
        if end == 1 and size == 1:
            return extent

        def new(op: str, left: Value, right: int) -> Value:
            return self._new(self._prologue, op, I64, left, Value(I64, str(right)))

        left = new("sub", extent, end)
        if size & (size - 1):
            steps = new("udiv", left, size)
        else:
            steps = new("lshr", left, size.bit_length() - 1) if size > 1 else left
        count = new("add", steps, 1)
        fits = self._new(self._prologue, "icmp", I1, extent, Value(I64, str(end)), predicate="uge")
        count = self._new(self._prologue, "select", I64, fits, count, Value(I64, "0"))
        if largest >= 2**63:
            return count
        limit = Value(I64, str(largest))
        is_less = self._new(self._prologue, "icmp", I1, count, limit, predicate="ult")
        return self._new(self._prologue, "select", I64, is_less, count, limit)

    def _truncated(self, limit: Value, type: Type) -> Value:
        if type == I64:
            return limit
        if limit.integer is not None:
            number = limit.integer
            return Value(type, str(number - 2**32 if number >> 31 else number))
        key = ("truncated", limit.name, type)
        if key not in self._limits:
            self._limits[key] = self._new(self._prologue, "trunc", I32, limit)
        return self._limits[key]

    def _extent(self, target: MemoryObject) -> Value:
        if target.word < 0:
            return Value(I64, str(target.nbytes))
        key = ("extent", target.word)
        if key not in self._limits:
            distance = _WORD_BYTES * (self._interface.count + target.word)
            address = Instruction(
                "getelementptr", self._addresses.names("%mtl.extent.at"), POINTER,
                [self._words, Value(I64, str(distance))], source=Integer(8),
            )  # fmt: skip
            load = Instruction(
                "load", self._addresses.names("%mtl.extent"), I64, [address.value], align=8
            )
            self._prologue += [address, load]
            self._limits[key] = load.value
        return self._limits[key]
