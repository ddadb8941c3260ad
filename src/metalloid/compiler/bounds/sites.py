"""Sites: accesses of a function that are checked together.

Accesses in a block at constant distances from each other share a site. A site that another one
covers on all paths is left out, and so is what known sizes prove. A read that is checked where its
value is used (`deferred_reads`) is a site of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.bounds.deferred_reads import DeferredRead, DeferredReads
from metalloid.compiler.bounds.interface import MemoryObject, ObjectAddress
from metalloid.compiler.bounds.objects import Addresses
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import Type, Vector, bits_of

_COPIES = ("@llvm.memcpy.", "@llvm.memmove.")
_FILL = "@llvm.memset."


@dataclass(frozen=True)
class Access:
    """One access of a site.

    Attributes
    ----------
    distance, nbytes : int
        From the site's offset, and its size.
    writes : bool
    debug : str
        Its ``!dbg`` attachment.
    """

    distance: int
    nbytes: int
    writes: bool
    debug: str


@dataclass
class Site:
    """Accesses that are checked together.

    Attributes
    ----------
    object : MemoryObject
    terms : tuple of (Value, int)
        Of their offset, see `objects.ObjectAddress`.
    block : str
    at : Instruction
        The first access.
    accesses : list of Access
    node : int
        Of the range of the offset without distances; -1 if it has no terms, -2 if it is unknown.
    deferred : DeferredRead or None
        Of a read that is checked where its value is used.
    """

    object: MemoryObject
    terms: tuple[tuple[Value, int], ...]
    block: str
    at: Instruction
    accesses: list[Access] = field(default_factory=list)
    node: int = -2
    deferred: DeferredRead | None = None

    @property
    def first(self) -> int:
        """The lowest distance."""
        return min(access.distance for access in self.accesses)

    @property
    def end(self) -> int:
        """The highest end of an access."""
        return max(access.distance + access.nbytes for access in self.accesses)


def sites_of(
    function: Function, addresses: Addresses, known_bytes: Mapping[int, int]
) -> Iterator[Site]:
    """The sites of a function, except those that others or known sizes cover.

    Parameters
    ----------
    function : Function
    addresses : Addresses
        Of its addresses.
    known_bytes : mapping
        Bytes that each launch has at least, by position of the parameter.
    """
    graph = Graph(function)
    reads = DeferredReads(function, graph)
    covering: dict[object, list[Site]] = {}
    deferred_sites: list[Site] = []
    for name in graph.order:
        in_block: dict[object, Site] = {}
        for instruction in [*function.blocks[name].body]:
            if _ends_grouping(instruction):
                in_block = {}
            for address, nbytes, writes in accessed(instruction):
                located = addresses.locate(address)
                if located is None or nbytes == 0:
                    continue
                if isinstance(nbytes, Value):
                    yield from _ends_of_copy(instruction, name, located, nbytes, writes)
                    continue
                start, end = located.distance, located.distance + nbytes
                size = located.object.nbytes
                if located.object.is_word:
                    size = known_bytes.get(located.object.word, 0)
                if not located.terms and start >= 0 and end <= size:
                    continue
                access = Access(start, nbytes, writes, instruction.debug)
                key = (located.object, tuple((index.name, step) for index, step in located.terms))
                deferred = reads.find(instruction, name) if located.object.word >= 0 else None
                if deferred is None and key in in_block:
                    in_block[key].accesses.append(access)
                    continue
                if any(
                    site.first <= start and end <= site.end and graph.dominates(site.block, name)
                    for site in covering.get(key, ())
                ):
                    continue
                site = Site(located.object, located.terms, name, instruction, [access])
                if deferred is not None:
                    site.deferred = deferred
                    deferred_sites.append(site)
                else:
                    in_block[key] = site
                    covering.setdefault(key, []).append(site)
    for of_key in covering.values():
        yield from of_key
    yield from deferred_sites


def _ends_of_copy(
    copy: Instruction, block: str, located: ObjectAddress, nbytes: Value, writes: bool
) -> Iterator[Site]:
    """The first and the last byte of a copy of a size, not 0, that is known at run time."""
    for terms, step in (((), 0), (((nbytes, 1),), -1)):
        access = Access(located.distance + step, 1, writes, copy.debug)
        yield Site(located.object, (*located.terms, *terms), block, copy, [access])


def _ends_grouping(instruction: Instruction) -> bool:
    """Whether what follows an instruction may not be reached."""
    return instruction.op == "call" and not is_lanewise(instruction.callee)


def accessed(instruction: Instruction) -> Iterator[tuple[Value, int | Value, bool]]:
    """Address, number of bytes, and whether it writes, of each access of an instruction.

    The number is a value where it is known at run time only.
    """
    operands = instruction.operands
    match instruction.op:
        case "load":
            yield operands[0], _stored_bytes(instruction.type), False
        case "store":
            yield operands[1], _stored_bytes(operands[0].type), True
        case "atomicrmw" | "cmpxchg":
            yield operands[0], operands[1].type.size, True
        case "call" if instruction.callee.startswith(_COPIES):
            for address, writes in ((operands[1], False), (operands[0], True)):
                yield address, _copied_bytes(operands[2]), writes
        case "call" if instruction.callee.startswith(_FILL):
            yield operands[0], _copied_bytes(operands[2]), True


def _copied_bytes(size: Value) -> int | Value:
    return size if size.integer is None else size.integer


def _stored_bytes(type: Type) -> int:
    """Bytes that an access of a type touches: a vector of three elements has no padding."""
    if isinstance(type, Vector):
        return -(-type.lanes * bits_of(type.element) // 8)
    return type.size
