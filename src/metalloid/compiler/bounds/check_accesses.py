"""Check that accesses of memory are inside of the object that they are made for.

An access whose check fails ends the launch: the check branches to a block that reports the *site*,
by number, and the offset in bytes. It is the form of a failed assertion, which vector code tests
without masks (`transforms.assertions`)::

    %inside = icmp ult i32 %index, %limit
    br i1 %inside, label %after, label %mtl.outside

Accesses are checked by sites (`sites`), and some reads where their values are used
(`deferred_reads`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from metalloid.compiler.bounds.callees import CheckedFunction
from metalloid.compiler.bounds.interface import MemoryObject
from metalloid.compiler.bounds.objects import Lookup
from metalloid.compiler.bounds.sites import Site
from metalloid.compiler.ir.element_constants import zero
from metalloid.compiler.ir.function import Block, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32, I64, POINTER, Float, Integer, Pointer, Type
from metalloid.compiler.transforms.assertions import OUTSIDE

_OUTSIDE_BLOCK = "%mtl.outside"
_WORD_BYTES = 8
#: Offset and extent of a pointer into what nothing is known of.
_UNKNOWN = Value(I64, str(2**61)), Value(I64, str(2**62))
#: No object is as large as what stands for one of which nothing is known, here and in objects.c.
_LARGEST = Value(I64, str(2**60))
#: Of a deferred read, in place of its offset.
_WAS_INSIDE = Value(I64, str(-(2**63)))


def check_accesses(checked: CheckedFunction, sites: Sequence[tuple[int, Site]]) -> None:
    """Insert the checks of sites with these numbers, and what the functions need that it calls."""
    addresses = checked.addresses
    if sites or checked.calls or addresses.selected or addresses.looked_up:
        inserter = _Inserter(checked)
        inserter.insert_extents()
        inserter.insert_arguments()
        inserter.insert(sites)


@dataclass(frozen=True)
class _Check:
    """One check of a site: of its offset, or of the outcome of a deferred read."""

    number: int
    site: Site
    outcome: Value | None = None
    is_read: bool = False


class _Inserter:
    def __init__(self, checked: CheckedFunction) -> None:
        self._checked, self._function = checked, checked.function
        self._addresses, self._interface = checked.addresses, checked.interface
        self._prologue: list[Instruction] = []
        self._limits: dict[object, Value] = {}

    def insert_extents(self) -> None:
        """Insert the extents of objects that are one of several."""
        for step, objects, name in self._addresses.selected:
            extents = [self._extent(each) for each in objects]
            block = next(
                each for each in self._function.blocks.values()
                if step in (each.phis if step.op == "phi" else each.body)
            )  # fmt: skip
            if step.op == "phi":
                block.phis.append(Instruction("phi", name, I64, extents, labels=[*step.labels]))
            else:
                given = [step.operands[0], *extents]
                at = block.body.index(step)
                block.body.insert(at, Instruction("select", name, I64, given))

    def insert_arguments(self) -> None:
        """Pass the offsets and extents of pointers, and the thread, to functions."""
        for call, callee in self._checked.calls:
            block = next(b for b in self._function.blocks.values() if call in b.body)
            body: list[Instruction] = []
            added: list[Value] = []
            for position in callee.added:
                located = self._addresses.locate(call.operands[position])
                if located is None:
                    added += _UNKNOWN
                    continue
                terms = self._terms(located.object, located.terms)
                offset = self._addresses.materialize(terms, located.distance, body)
                added += offset, self._extent(located.object)
            if callee.thread is not None:
                assert self._checked.thread is not None
                added.append(self._checked.thread)
            call.operands += added
            if call.attributes is not None:
                arguments = (*call.attributes.arguments, *[()] * len(added))
                call.attributes = call.attributes._replace(arguments=arguments)
            at = block.body.index(call)
            block.body[at:at] = body

    def insert(self, checked: Sequence[tuple[int, Site]]) -> None:
        function = self._function
        number = Instruction("phi", "%mtl.site", I32)
        offset = Instruction("phi", "%mtl.outside.offset", I64)
        extent = Instruction("phi", "%mtl.outside.extent", I64)
        outside = Block(_OUTSIDE_BLOCK, [number, offset, extent])
        reported = [phi.value for phi in outside.phis]
        outside.body.append(Instruction("call", operands=reported, callee=OUTSIDE))
        at: dict[Instruction, list[_Check]] = {}
        for each in checked:
            for instruction, check in self._checks_of(*each):
                at.setdefault(instruction, []).append(check)
        lookups = {each.offset: each for each in self._addresses.looked_up.values()}
        blocks: dict[str, Block] = {}
        for block in function.blocks.values():
            is_split = any(i in at or i in lookups for i in (*block.body, block.end))
            pieces = self._split(block, at, lookups, outside) if is_split else [block]
            blocks.update((piece.name, piece) for piece in pieces)
        if outside.phis[0].operands:
            blocks[_OUTSIDE_BLOCK] = outside
        function.blocks = blocks
        self._insert_prologue()

    def _checks_of(self, number: int, site: Site) -> Iterator[tuple[Instruction, _Check]]:
        """The checks of a site, and the instruction before which each is."""
        if site.deferred is None:
            yield site.at, _Check(number, site)
            return
        # Whether the read was inside, or its offset, goes where the value goes.
        names = self._addresses.names
        outcomes = {
            source: Value(I64, names("%mtl.read"))
            for source in (site.at.result, *(join.result for _, join, _ in site.deferred.joins))
        }
        for block, join, sources in site.deferred.joins:
            operands = [outcomes.get(source, _WAS_INSIDE) for source in sources]
            if join.op == "select":
                operands[0] = join.operands[0]
            outcome = replace(
                join, result=outcomes[join.result].name, type=I64, operands=operands,
                labels=[*join.labels], flags=(), metadata=(),
            )  # fmt: skip
            where = self._function.blocks[block]
            if join.op == "phi":
                where.phis.append(outcome)
            else:
                where.body.insert(where.body.index(join) + 1, outcome)
        yield site.at, _Check(number, site, outcomes[site.at.result], is_read=True)
        for use, source in site.deferred.uses:
            yield use, _Check(number, site, outcomes[source])

    def _split(
        self,
        block: Block,
        checks: Mapping[Instruction, list[_Check]],
        lookups: Mapping[Instruction, Lookup],
        outside: Block,
    ) -> list[Block]:
        """The pieces of a block, between which there are checks and lookups."""
        first, pieces = block.name, [block]
        inside_label = "%mtl.inside" if first[1].isdigit() else f"{first}.inside"
        moved = [each.extent for each in lookups.values()]  # with the other call
        body, block.body = [i for i in block.body if i not in moved], []
        end, block.end = block.end, Instruction("unreachable")
        names = self._addresses.names
        for instruction in (*body, end):
            for check in checks.get(instruction, ()):
                if check.is_read:
                    pieces += self._read_inside(instruction, check, pieces[-1])
                    continue
                block, site = pieces[-1], check.site
                inside, offset = self._inside(check, block.body)
                after = Block(names(inside_label))
                block.end = Instruction("br", operands=[inside], labels=[after.name, outside.name])
                reported = (Value(I32, str(check.number)), offset, self._extent(site.object))
                for phi, value in zip(outside.phis, reported, strict=True):
                    phi.operands.append(value)
                    phi.labels.append(block.name)
                pieces.append(after)
            is_read = any(check.is_read for check in checks.get(instruction, ()))
            if instruction in lookups:
                pieces += self._look_up(lookups[instruction], pieces[-1])
            elif instruction is not end and not is_read:
                pieces[-1].body.append(instruction)
        pieces[-1].end = end
        for successor in dict.fromkeys(end.labels) if len(pieces) > 1 else ():
            replace_predecessor(self._function.blocks[successor], first, pieces[-1].name)
        return pieces

    def _inside(self, check: _Check, body: list[Instruction]) -> tuple[Value, Value]:
        """Whether a check holds, and the offset for the report."""
        if check.outcome is None:
            return self._check(check.site, body)
        inside = self._new(body, "icmp", I1, check.outcome, _WAS_INSIDE, predicate="eq")
        return inside, check.outcome

    def _read_inside(self, load: Instruction, check: _Check, block: Block) -> list[Block]:
        """Load if the address is inside, else give 0."""
        names = self._addresses.names
        inside, offset = self._check(check.site, block.body)
        assert check.outcome is not None
        operands = [inside, _WAS_INSIDE, offset]
        block.body.append(Instruction("select", check.outcome.name, I64, operands))
        own = replace(load, result=names("%mtl.read.inside"))
        read, after = Block(names("%mtl.reads")), Block(names("%mtl.has_read"))
        block.end = Instruction("br", operands=[inside], labels=[read.name, after.name])
        read.body, read.end = [own], Instruction("br", labels=[after.name])
        is_scalar = isinstance(load.type, Integer | Float | Pointer)
        none = Value(load.type, zero(load.type) if is_scalar else "zeroinitializer")
        after.phis = [
            Instruction(
                "phi", load.result, load.type, [own.value, none], labels=[read.name, block.name]
            )
        ]
        return [read, after]

    def _look_up(self, lookup: Lookup, block: Block) -> list[Block]:
        """Look up the object of a pointer, unless it is the object that the pointer lies in.

        So the nodes of a list or a tree in one buffer need no call. A launch whose arguments point
        to memory may have views of that buffer, and looks up all.
        """
        calls = [lookup.offset, lookup.extent]
        if self._interface.slots:
            table = self._word(2 * (self._interface.count + len(self._interface.slots)))
            for call in calls:
                call.operands[1] = table
        source, body = lookup.source, block.body
        if source is None or source.object.nbytes:
            body += calls
            return []
        terms = self._terms(source.object, source.terms)
        distance = self._addresses.materialize(terms, source.distance, body)
        own = self._new(body, "ptrtoint", I64, lookup.pointer.operands[0])
        first = self._new(body, "sub", I64, own, distance)
        offset = self._new(body, "sub", I64, lookup.offset.operands[0], first)
        extent = self._extent(source.object)
        is_near = self._new(body, "icmp", I1, offset, extent, predicate="ult")
        is_known = self._new(body, "icmp", I1, extent, _LARGEST, predicate="ult")
        is_near = self._new(body, "and", I1, is_near, is_known)
        if self._interface.slots:
            is_free = self._new(body, "icmp", I1, table, Value(I64, "0"), predicate="eq")
            is_near = self._new(body, "and", I1, is_near, is_free)
        names = self._addresses.names
        far, after = Block(names("%mtl.far")), Block(names("%mtl.looked_up"))
        block.end = Instruction("br", operands=[is_near], labels=[after.name, far.name])
        for near, call in zip((offset, extent), calls, strict=True):
            other = replace(call, result=names(call.result))
            far.body.append(other)
            labels = [block.name, far.name]
            after.phis.append(
                Instruction("phi", call.result, I64, [near, other.value], labels=labels)
            )
        far.end = Instruction("br", labels=[after.name])
        return [far, after]

    def _new(self, body: list[Instruction], op: str, type: Integer, *operands: Value,
             predicate: str = "") -> Value:  # fmt: skip
        name = self._addresses.names("%mtl.check")
        body.append(Instruction(op, name, type, [*operands], predicate=predicate))
        return body[-1].value

    def _check(self, site: Site, body: list[Instruction]) -> tuple[Value, Value]:
        """Whether a site's accesses are inside, and its offset for the report."""
        first, end, terms = site.first, site.end, self._terms(site.object, site.terms)
        if site.object.is_selected:
            return self._check_selected(site, body)
        if not terms:
            fits = self._limit(site.object, end, 1, 2**63)
            inside = self._new(body, "icmp", I1, Value(I64, "0"), fits, predicate="ult")
            return (inside if first >= 0 else Value(I1, "false")), Value(I64, "0")
        if len(terms) == 1 and terms[0][1] > 0 and first >= 0:
            [(index, size)] = terms
            narrow, is_unsigned = self._narrow(index)
            if is_unsigned or first < size:
                # An unsigned index of 2^32 - 1 is refused even where there are as many elements.
                largest = 2**63 if narrow.type == I64 else 2**32 - 1 if is_unsigned else 2**31
                limit = self._limit(site.object, end, size, largest)
                inside = self._new(
                    body, "icmp", I1, narrow, self._truncated(limit, narrow.type), predicate="ult"
                )
                return inside, self._addresses.materialize(terms, 0, body)
        offset = self._addresses.materialize(terms, first, body)
        limit = self._limit(site.object, end - first, 1, 2**63)
        inside = self._new(body, "icmp", I1, offset, limit, predicate="ult")
        return inside, self._addresses.materialize(terms, 0, body)

    def _check_selected(self, site: Site, body: list[Instruction]) -> tuple[Value, Value]:
        """The same in one of several objects, whose extent is known here only."""
        extent, size = self._extent(site.object), Value(I64, str(site.end - site.first))
        offset = self._addresses.materialize(site.terms, site.first, body)
        last = self._new(body, "sub", I64, extent, size)
        fits = self._new(body, "icmp", I1, extent, size, predicate="uge")
        is_before = self._new(body, "icmp", I1, offset, last, predicate="ule")
        inside = self._new(body, "and", I1, fits, is_before)
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

    @functools.cached_property
    def _words(self) -> Value:
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
        if target.is_selected:
            return Value(I64, target.name)
        if target.word < 0:
            return Value(I64, str(target.nbytes))
        if target.is_word:
            return self._word(self._interface.count + target.word)
        return self._word(self._words_of_slot(target) + 1)

    def _words_of_slot(self, target: MemoryObject) -> int:
        """The position of the two words of a pointer in memory."""
        number = self._interface.slots.index((target.word, target.slot))
        return 2 * (self._interface.count + number)

    def _terms(
        self, target: MemoryObject, terms: tuple[tuple[Value, int], ...]
    ) -> tuple[tuple[Value, int], ...]:
        """The terms of an offset from the beginning of the object."""
        if target.slot < 0:
            return terms
        return (*terms, (self._word(self._words_of_slot(target)), 1))

    def _word(self, position: int) -> Value:
        """A word of the launch after those of the parameters."""
        key = ("word", position)
        if key not in self._limits:
            distance = _WORD_BYTES * position
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
