"""A verifier, as LLVM's: whether a function is well-formed SSA.

It checks what passes can break: each value has one definition, which dominates its uses; phis have
one incoming value for each predecessor; branches go to blocks that exist; operands have the types
that their instructions want and that their definitions gave them.
"""

from __future__ import annotations

from collections.abc import Iterator

from metalloid.compiler.ir.cfg import immediate_dominators, reverse_postorder
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import (
    I1,
    POINTER,
    VOID,
    Float,
    Integer,
    Pointer,
    Struct,
    Type,
    Vector,
    bits_of,
)

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
    errors = _Verifier(function).errors()
    found = [error for _, error in zip(range(_MAX_ERRORS), errors, strict=False)]
    if found:
        where = f" after {after}" if after else ""
        raise InvalidIR("\n  ".join((f"invalid IR in @{function.name}{where}:", *found)))


class _Verifier:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._blocks = function.blocks
        self._types: dict[str, Type] = {value.name: value.type for value in function.parameters}
        #: Block and position of each definition; parameters have none.
        self._definition: dict[str, tuple[str, int]] = {}
        self._duplicates: list[str] = []
        for block in function.blocks.values():
            for position, instruction in enumerate(block.instructions()):
                name = instruction.result
                if not name:
                    continue
                if name in self._types:
                    self._duplicates.append(name)
                self._types[name] = instruction.type
                self._definition[name] = (block.name, position)

    def errors(self) -> Iterator[str]:
        for name in self._duplicates:
            yield f"{name} has several definitions"
        targets_exist = True
        for block in self._blocks.values():
            for error in self._structure(block):
                targets_exist = False
                yield error
        if not targets_exist:
            return  # control flow means nothing
        self._find_control_flow()
        for block in self._blocks.values():
            yield from self._phis(block)
            for position, instruction in enumerate(block.instructions()):
                for error in (*self._uses(block, position, instruction), *_typing(instruction)):
                    yield f"{block.name}: {instruction_text(instruction)}: {error}"
                if instruction.op == "ret":
                    yield from self._return(instruction)

    def _structure(self, block: Block) -> Iterator[str]:
        if self._blocks.get(block.name) is not block:
            yield f"{block.name} is listed under another name"
        if block.end.op not in TERMINATORS:
            yield f"{block.name} ends with {block.end.op}, which is no terminator"
        for instruction in block.body:
            if instruction.op in TERMINATORS or instruction.op == "phi":
                yield f"{block.name} has {instruction.op} among its ordinary instructions"
        yield from (f"{block.name}: {i.op} is no phi" for i in block.phis if i.op != "phi")
        if block.end.op == "br" and len(block.end.labels) != 1 + len(block.end.operands):
            yield f"{block.name}: a branch with {len(block.end.labels)} targets"
        for label in block.end.labels:
            if label not in self._blocks:
                yield f"{block.name} branches to {label}, which does not exist"
            elif label == self._function.entry.name:
                yield f"{block.name} branches to the entry"

    def _find_control_flow(self) -> None:
        blocks = self._blocks
        entry = self._function.entry.name
        order = reverse_postorder(entry, lambda name: blocks[name].successors)
        self._number = {name: number for number, name in enumerate(order)}
        self._predecessors: dict[str, list[str]] = {name: [] for name in blocks}
        for block in blocks.values():
            for successor in block.successors:
                self._predecessors[successor].append(block.name)
        reachable = {
            name: [each for each in self._predecessors[name] if each in self._number]
            for name in order
        }
        self._dominator = immediate_dominators(order, reachable)

    def _phis(self, block: Block) -> Iterator[str]:
        expected = sorted(self._predecessors[block.name])
        for phi in block.phis:
            if len(phi.labels) != len(phi.operands):
                yield f"{block.name}: {phi.result} has {len(phi.labels)} incoming blocks"
            elif sorted(set(phi.labels)) != expected:
                yield (
                    f"{block.name}: {instruction_text(phi)}: the predecessors are "
                    f"{', '.join(expected) or 'none'}"
                )

    def _uses(self, block: Block, position: int, instruction: Instruction) -> Iterator[str]:
        for number, operand in enumerate(instruction.operands):
            if not operand.name.startswith("%"):
                continue
            type_ = self._types.get(operand.name)
            if type_ is None:
                yield f"{operand.name} is not defined"
                continue
            if type_ != operand.type:
                yield f"{operand.name} is of type {type_}"
            if operand.name not in self._definition:
                continue  # a parameter
            user, last = block.name, position
            if instruction.op == "phi":
                if number >= len(instruction.labels):
                    continue
                user, last = instruction.labels[number], -1
            if user in self._number and not self._reaches(operand.name, user, last):
                yield f"{operand.name} does not dominate this use"

    def _reaches(self, name: str, user: str, last: int) -> bool:
        """Whether a definition dominates a position of a block; -1 is its end."""
        block, position = self._definition[name]
        if block == user:
            return last < 0 or position < last
        if block not in self._number:
            return False
        while self._number[user] > self._number[block]:
            user = self._dominator[user]
        return user == block

    def _return(self, instruction: Instruction) -> Iterator[str]:
        returned = instruction.operands[0].type if instruction.operands else VOID
        if returned != self._function.result:
            yield f"a return of {returned} from a function of {self._function.result}"


# ---- types of single instructions ----


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
    elif i.op in ("extractelement", "insertelement", "shufflevector", "extractvalue"):
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


_OPERANDS = {
    **dict.fromkeys((*INTEGER_BINARY, *FLOAT_BINARY, "icmp", "fcmp", "store", "atomicrmw"), 2),
    **dict.fromkeys((*CASTS, "fneg", "freeze", "load", "switch", "extractvalue"), 1),
    **dict.fromkeys(("extractelement", "shufflevector"), 2),
    **dict.fromkeys(("select", "insertelement", "cmpxchg"), 3),
    **dict.fromkeys(("alloca", "fence", "unreachable"), 0),
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
    if address != POINTER:
        yield f"an address of type {address}"
    if i.op == "getelementptr":
        if i.type != POINTER:
            yield f"an address of type {i.type}"
        for index in types[1:]:
            if not isinstance(index, Integer):
                yield f"an index of type {index}"
    if i.op == "atomicrmw" and i.type != types[1]:
        yield f"a result of type {i.type} of an operation on {types[1]}"
    if i.op == "cmpxchg" and (types[1] != types[2] or i.type != Struct((types[1], I1))):
        yield f"a result of type {i.type} of an exchange of {types[1]} and {types[2]}"


def _aggregate(i: Instruction, types: list[Type]) -> Iterator[str]:
    whole = types[0]
    if i.op == "extractvalue":
        if not isinstance(whole, Struct) or i.type != whole.members[i.indices[0]]:
            yield f"member {i.indices[0]} of {whole} as {i.type}"
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
