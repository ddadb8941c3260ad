"""A verifier, as LLVM's: whether a function is well-formed SSA.

It checks what passes can break: each value has one definition, which dominates its uses; phis have
one incoming value for each predecessor; blocks end with a terminator and branch to blocks that
exist, none of them the entry; operands have the types that their instructions want (`type_rules`)
and that their definitions gave them. Blocks that are unreachable may use anything that is defined.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from metalloid.compiler.ir.cfg import immediate_dominators, reverse_postorder
<<<<<<< Updated upstream
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.type_rules import constant_error, type_error
from metalloid.compiler.ir.types import VOID, Type
=======
from metalloid.compiler.ir.function import Block, Function, Instruction, member_type
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import (
    I1,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    Struct,
    Type,
    Vector,
    bits_of,
)
>>>>>>> Stashed changes

TERMINATORS = frozenset(("br", "switch", "ret", "unreachable"))
_MAX_ERRORS = 20


class InvalidIR(Exception):
    """A function is not well-formed; the text lists the first errors."""


def verify(function: Function, after: str = "") -> None:
    """Check a function.

    Parameters
    ----------
    after : str, optional
        The pass that has changed it, for the message.

    Raises
    ------
    InvalidIR
        If it is not well-formed.
    """
    if errors := list(itertools.islice(_Verifier(function).errors(), _MAX_ERRORS)):
        where = f" after {after}" if after else ""
        raise InvalidIR("\n  ".join((f"invalid IR in @{function.name}{where}:", *errors)))


class _Verifier:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._blocks = function.blocks
        #: Type, block and position of each definition; parameters are before the first of the
        #: entry.
        self._definitions: dict[str, tuple[Type, str, int]] = {}

    def errors(self) -> Iterator[str]:
        """What is wrong, in words; it takes long only where something is."""
        if not self._blocks:
            yield "no blocks"
            return
        broken = [error for name in self._blocks for error in self._structure(name)]
        yield from broken
        yield from self._find_definitions()
        if broken:
            return  # control flow means nothing
        self._find_control_flow()
        for block in self._blocks.values():
            for phi in block.phis:
                yield from self._phi(block, phi)
            for i, error in self._ordinary_uses(block):
                yield f"{block.name}: {_text(i)}: {error}"
            for i in block.instructions():
                if error := type_error(i):
                    yield f"{block.name}: {_text(i)}: {error}"
            if block.end.op == "ret":
                yield from self._return(block.end)

    # -- structure

    def _find_definitions(self) -> Iterator[str]:
        definitions, entry = self._definitions, self._function.entry.name
        for type_, name in self._function.parameters:
            if name in definitions:
                yield f"{name} has several definitions"
            definitions[name] = (type_, entry, -1)
        for block in self._blocks.values():
            home = block.name
            for position, i in enumerate((*block.phis, *block.body, block.end)):
                name = i.result
                if name:
                    if name in definitions:
                        yield f"{name} has several definitions"
                    definitions[name] = (i.type, home, position)

    def _structure(self, name: str) -> Iterator[str]:
        block = self._blocks[name]
        if name != block.name:
            yield f"{block.name} is listed as {name}"
        if block.end.op not in TERMINATORS:
            yield f"{block.name} ends with {block.end.op}, which is no terminator"
        for i in block.body:
            if i.op in TERMINATORS or i.op == "phi":
                yield f"{block.name} has {i.op} among its ordinary instructions"
        for i in block.phis:
            if i.op != "phi":
                yield f"{block.name} has {i.op} among its phis"
            elif len(i.labels) != len(i.operands):
                yield f"{block.name}: {i.result} has {len(i.labels)} incoming blocks"
        yield from self._targets(block)

    def _targets(self, block: Block) -> Iterator[str]:
        end = block.end
        wanted = {"br": 1 + len(end.operands), "switch": 1 + len(end.cases)}.get(end.op, 0)
        if len(end.labels) != wanted:
            yield f"{block.name}: {end.op} with {len(end.labels)} targets instead of {wanted}"
        if end.op == "switch" and len(set(end.cases)) != len(end.cases):
            yield f"{block.name}: two cases of the same value"
        for label in end.labels:
            if label not in self._blocks:
                yield f"{block.name} branches to {label}, which does not exist"
            elif label == self._function.entry.name:
                yield f"{block.name} branches to the entry"

    def _find_control_flow(self) -> None:
        successors = {name: block.successors for name, block in self._blocks.items()}
        order = reverse_postorder(self._function.entry.name, successors.__getitem__)
        self._predecessors: dict[str, list[str]] = {name: [] for name in successors}
        for name, of_block in successors.items():
            for successor in of_block:
                self._predecessors[successor].append(name)
        is_reachable = set(order)
        reachable = {
            name: [each for each in self._predecessors[name] if each in is_reachable]
            for name in order
        }
        self._subtree = _subtrees(order, immediate_dominators(order, reachable))

    def _dominates(self, above: str, below: str) -> bool:
        """Whether every path to a block goes through another; of unreachable ones, all do."""
        if below not in self._subtree:
            return True
        first, end = self._subtree.get(above, (0, 0))
        return first <= self._subtree[below][0] < end

    # -- uses

    def _phi(self, block: Block, phi: Instruction) -> Iterator[str]:
        where = f"{block.name}: {phi.result}"
        predecessors = self._predecessors[block.name]
        incoming = dict(zip(phi.labels, phi.operands, strict=True))
        if not phi.labels or incoming.keys() != set(predecessors):
            yield (
                f"{where} has values from {', '.join(incoming) or 'no block'}; the predecessors "
                f"are {', '.join(predecessors) or 'none'}"
            )
        for label, value in zip(phi.labels, phi.operands, strict=True):
            if incoming[label] != value:
                yield f"{where} has two values from {label}"
            if value.is_constant:
                error = constant_error(value)
                if error:
                    yield f"{where}: {error}"
                continue
            type_, home, _ = self._definitions.get(value.name, (None, "", 0))
            if type_ is None:
                yield f"{where}: {value.name} is not defined"
            elif type_ != value.type:
                yield f"{where}: {value.name} is of type {type_}"
            elif not self._dominates(home, label):
                yield f"{where}: {value.name} does not dominate the end of {label}"

    def _ordinary_uses(self, block: Block) -> Iterator[tuple[Instruction, str]]:
        definitions, here = self._definitions, block.name
        for position, i in enumerate((*block.body, block.end), len(block.phis)):
            for value in i.operands:
                type_, name = value
                if name[0] != "%":
                    if error := constant_error(value):
                        yield i, error
                    continue
                found = definitions.get(name)
                if found is None:
                    yield i, f"{name} is not defined"
                    continue
                defined, home, place = found
                if defined is not type_ and defined != type_:
                    yield i, f"{name} is of type {defined}"
                if home == here:
                    dominates = place < position
                else:
                    dominates = self._dominates(home, here)
                if not dominates:
                    yield i, f"{name} does not dominate this use"

    def _return(self, instruction: Instruction) -> Iterator[str]:
        returned = instruction.operands[0].type if instruction.operands else VOID
        if returned != self._function.result:
            yield f"a return of {returned} from a function of {self._function.result}"


def _text(instruction: Instruction) -> str:
    """The text of an instruction; of one that is so broken that it has none, its name."""
    try:
        return instruction_text(instruction)
    except (ValueError, AssertionError, IndexError):
        return f"{instruction.result} = {instruction.op}"


<<<<<<< Updated upstream
def _subtrees(order: list[str], dominator: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Ranges of preorder numbers of the dominator tree: those of a block's subtree.

    Parameters
    ----------
    order : list of str
        A reverse postorder: dominators come first.
    """
    size = dict.fromkeys(order, 1)
    for name in reversed(order[1:]):
        size[dominator[name]] += size[name]
    ranges = {order[0]: (0, size[order[0]])}
    free = {order[0]: 1}  # the next number in the subtree of each
    for name in order[1:]:
        first = free[dominator[name]]
        free[dominator[name]] += size[name]
        free[name] = first + 1
        ranges[name] = (first, first + size[name])
    return ranges
=======
def _typing(i: Instruction) -> Iterator[str]:
    """What is wrong with the types of an instruction by themselves."""
    if bool(i.result) != (i.type != VOID) and not (i.op == "call" and i.type == VOID):
        yield f"a result of type {i.type}"
    types = [operand.type for operand in i.operands]
    count = _OPERANDS.get(i.op)
    if count is not None and len(types) != count:
        yield f"{len(types)} operands instead of {count}"
        return
    if i.op in INTEGER_BINARY or i.op in FLOAT_BINARY or i.op in ("fneg", "freeze"):
        yield from _all_are(i.type, types)
        wanted = Integer if i.op in INTEGER_BINARY else Float
        if i.op != "freeze" and not isinstance(_element(i.type), wanted):
            yield f"{i.op} of {i.type}"
    elif i.op in ("icmp", "fcmp"):
        yield from _all_are(types[0], types)
        if i.type != _with_element(types[0], I1):
            yield f"a comparison of {types[0]} gives {_with_element(types[0], I1)}"
        if (i.op == "fcmp") != isinstance(_element(types[0]), Float):
            yield f"{i.op} of {types[0]}"
    elif i.op in CASTS:
        yield from _cast(i.op, types[0], i.type)
    elif i.op == "phi":
        yield from _all_are(i.type, types)
    elif i.op == "select":
        yield from _all_are(i.type, types[1:])
        if types[0] not in (I1, _with_element(i.type, I1)):
            yield f"a condition of type {types[0]}"
    elif i.op in ("load", "store", "getelementptr", "atomicrmw", "cmpxchg"):
        yield from _memory(i, types)
    elif i.op in _OF_AGGREGATES:
        yield from _aggregate(i, types)
    elif i.op == "br" and types not in ([], [I1]):
        yield f"a condition of type {types[0]}"
    elif i.op == "switch":
        if not isinstance(types[0], Integer):
            yield f"a switch over {types[0]}"
        cases = i.cases
        if len(cases) + 1 != len(i.labels):
            yield f"{len(cases)} cases for {len(i.labels) - 1} targets"
        if len(set(cases)) != len(cases):
            yield "two cases of the same value"


_OF_AGGREGATES = (
    "extractelement", "insertelement", "shufflevector", "extractvalue", "insertvalue",
)  # fmt: skip
_OPERANDS = {
    **dict.fromkeys((*INTEGER_BINARY, *FLOAT_BINARY, "icmp", "fcmp", "store", "atomicrmw"), 2),
    **dict.fromkeys((*CASTS, "fneg", "freeze", "load", "switch", "extractvalue"), 1),
    **dict.fromkeys(("extractelement", "shufflevector", "insertvalue"), 2),
    **dict.fromkeys(("select", "insertelement", "cmpxchg"), 3),
    **dict.fromkeys(("fence", "unreachable"), 0),
}  # fmt: skip


def _all_are(wanted: Type, types: list[Type]) -> Iterator[str]:
    for type_ in types:
        if type_ != wanted:
            yield f"an operand of type {type_} instead of {wanted}"


def _element(type_: Type) -> Type:
    return type_.element if isinstance(type_, Vector) else type_


def _with_element(type_: Type, element: Type) -> Type:
    return Vector(type_.lanes, element) if isinstance(type_, Vector) else element


_CAST_KINDS: dict[str, tuple[type[Type], type[Type]]] = {
    "zext": (Integer, Integer), "sext": (Integer, Integer), "trunc": (Integer, Integer),
    "fptrunc": (Float, Float), "fpext": (Float, Float),
    "fptoui": (Float, Integer), "fptosi": (Float, Integer),
    "uitofp": (Integer, Float), "sitofp": (Integer, Float),
    "ptrtoint": (Pointer, Integer), "inttoptr": (Integer, Pointer),
    "addrspacecast": (Pointer, Pointer),
}  # fmt: skip


def _cast(op: str, source: Type, target: Type) -> Iterator[str]:
    kinds = _CAST_KINDS.get(op)
    if kinds is None:
        if op == "bitcast" and bits_of(source) != bits_of(target):
            yield f"a bitcast from {source} to {target}"
        return
    is_of_kinds = isinstance(_element(source), kinds[0]) and isinstance(_element(target), kinds[1])
    if not is_of_kinds or _with_element(source, I1) != _with_element(target, I1):
        yield f"{op} from {source} to {target}"
        return
    before, after = bits_of(_element(source)), bits_of(_element(target))
    if (op in ("zext", "sext", "fpext") and before >= after) or (
        op in ("trunc", "fptrunc") and before <= after
    ):
        yield f"{op} from {source} to {target}"


def _memory(i: Instruction, types: list[Type]) -> Iterator[str]:
    address = types[1] if i.op == "store" else types[0]
    if i.op == "getelementptr":
        if _element(i.type) != _element(address):
            yield f"{i.type} inside of {address}"
        for index in types[1:]:
            if not isinstance(_element(index), Integer):
                yield f"an index of type {index}"
        address = _element(address)
    if not isinstance(address, Pointer):
        yield f"an address of type {address}"
    if i.op == "atomicrmw" and i.type != types[1]:
        yield f"a result of type {i.type} of an operation on {types[1]}"
    if i.op == "cmpxchg" and (types[1] != types[2] or i.type != Struct((types[1], I1))):
        yield f"a result of type {i.type} of an exchange of {types[1]} and {types[2]}"


def _aggregate(i: Instruction, types: list[Type]) -> Iterator[str]:
    whole = types[0]
    if i.op in ("extractvalue", "insertvalue"):
        member = i.type if i.op == "extractvalue" else types[1]
        if not isinstance(whole, Struct | Array) or member != member_type(whole, i.indices):
            yield f"member {i.indices} of {whole} as {member}"
        return
    if not isinstance(whole, Vector):
        yield f"{i.op} of {whole}"
        return
    element = whole.element
    match i.op:
        case "extractelement":
            if i.type != element or not isinstance(types[1], Integer):
                yield f"{i.type} from {whole}"
        case "insertelement":
            if i.type != whole or types[1] != element or not isinstance(types[2], Integer):
                yield f"{types[1]} into {whole}"
        case "shufflevector":
            if types[1] != whole or not isinstance(i.type, Vector) or i.type.element != element:
                yield f"a shuffle of {whole} and {types[1]} to {i.type}"
>>>>>>> Stashed changes
