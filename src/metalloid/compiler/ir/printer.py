"""From `Function`s back to text: what the parser reads, as LLVM writes it.

The text stands in for the function's own in its module, without the hints that the parser was not
asked to keep. Instructions of our own (`DIALECT`) are written in the
generic form of MLIR: ``%r = "mtl.name"(operands) {indices = [1]} from source : type``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from metalloid.compiler.ir.function import (
    DIALECT,
    Block,
    CallAttributes,
    Function,
    Instruction,
    Value,
)
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import VOID, Pointer

_PLAIN_NAME = re.compile(r'[%@](?:[\w.$-]+|"[^"]*")$')
_INVARIANT = "invariant"
_TAIL = ("tail", "musttail", "notail")


def function_text(function: Function) -> str:
    """The definition of `function`, without a line end."""
    parameters = _list(function.parameters, function.parameter_attributes)
    words = (
        "define", function.linkage, *function.qualifiers, str(function.result),
        f"@{function.name}({parameters})",
    )  # fmt: skip
    return "\n".join(
        (
            " ".join(filter(None, (*words, function.attributes, "{"))),
            *map(_block_text, function.blocks.values()),
            "}",
        )
    )


def _block_text(block: Block) -> str:
    lines = (f"  {instruction_text(instruction)}" for instruction in block.instructions())
    return "\n".join((f"{_name(block.name)[1:]}:", *lines))


def instruction_text(instruction: Instruction) -> str:
    """One instruction as LLVM writes it."""
    result = f"{_name(instruction.result)} = " if instruction.result else ""
    return result + _expression(instruction)


def _expression(i: Instruction) -> str:
    metadata = "".join(f", {name} {node}" for name, node in i.metadata)
    return _without_metadata(i) + metadata


def _without_metadata(i: Instruction) -> str:
    op = " ".join((i.op, *(flag for flag in i.flags if flag != _INVARIANT)))
    operands = ", ".join(map(_typed, i.operands))
    align = f", align {i.align}" if i.align else ""
    if i.op in INTEGER_BINARY or i.op in FLOAT_BINARY:
        return _binary(op, i)
    if i.op in ("icmp", "fcmp"):
        return _binary(f"{op} {i.predicate}", i)
    if i.op in CASTS:
        return f"{op} {operands} to {i.type}"
    if i.op in DIALECT:
        indices = f" {{indices = {list(i.indices)}}}" if i.indices else ""
        source = f" from {i.source}" if i.source is not VOID else ""
        return f'"mtl.{i.op}"({operands}){indices}{source} : {i.type}'
    match i.op:
        case "load" | "store":
            atomic = op.replace(i.op, f"{i.op} atomic", 1) if i.ordering else op
            loaded = f" {i.type}," if i.op == "load" else ""
            ordering = f" {i.ordering}" if i.ordering else ""
            hint = ", !invariant.load !{}" if _INVARIANT in i.flags else ""
            return f"{atomic}{loaded} {operands}{ordering}{align}{hint}"
        case "getelementptr":
            return f"{op} {i.source}, {operands}"
        case "alloca":
            lane_step = f", lane_step {i.lane_step}" if i.lane_step else ""
            of = "of " if "parameter" in i.flags else ""
            count = f", {of}{operands}" if operands else ""
            space = (
                f", addrspace({i.type.space})"
                if isinstance(i.type, Pointer) and i.type.space
                else ""
            )
            return f"{op} {i.source}{count}{align}{space}{lane_step}"
        case "phi":
            incoming = zip(i.operands, i.labels, strict=True)
            pairs = (f"[ {_name(value.name)}, {_name(label)} ]" for value, label in incoming)
            return f"{op} {i.type} {', '.join(pairs)}"
        case "call":
            return _call(i)
        case "shufflevector":
            mask = ", ".join("i32 poison" if n < 0 else f"i32 {n}" for n in i.mask)
            return f"{op} {operands}, <{len(i.mask)} x i32> <{mask}>"
        case "extractvalue" | "insertvalue":
            return f"{op} {operands}, {', '.join(map(str, i.indices))}"
        case "atomicrmw":
            deferred = "" if i.accumulator is None else f", accumulator {i.accumulator}"
            return f"{op} {i.operation} {operands} {i.ordering}{align}{deferred}"
        case "cmpxchg":
            return f"{op} {operands} {i.ordering}{align}"
        case "fence":
            return f"{op} {i.ordering}"
        case "br":
            return f"{op} {', '.join([*map(_typed, i.operands), *map(_label, i.labels)])}"
        case "switch":
            targets = zip(i.cases, i.labels[1:], strict=True)
            rows = " ".join(f"{i.operands[0].type} {c}, {_label(label)}" for c, label in targets)
            return f"{op} {operands}, {_label(i.labels[0])} [ {rows} ]"
        case "ret":
            return f"{op} {operands or 'void'}"
    return f"{op} {operands}".rstrip()


def _binary(start: str, instruction: Instruction) -> str:
    """Two operands of one type, which is written once."""
    left, right = instruction.operands
    return f"{start} {_typed(left)}, {_name(right.name)}"


def _call(instruction: Instruction) -> str:
    tail = [flag for flag in instruction.flags if flag in _TAIL]
    others = [flag for flag in instruction.flags if flag not in _TAIL]
    attributes = instruction.attributes or CallAttributes((), (), ())
    callee, arguments = instruction.callee, instruction.operands
    if not callee:
        callee, arguments = arguments[0].name, arguments[1:]
    given = _list(arguments, attributes.arguments)
    start = (*tail, "call", *others, *attributes.result, str(instruction.type))
    return " ".join((*start, f"{callee}({given})", *attributes.function))


def _list(values: Sequence[Value], attributes: Sequence[Sequence[str]]) -> str:
    """Parameters or arguments; `attributes` are of the first ones, or of none."""
    words = (*attributes, *itertools.repeat((), len(values) - len(attributes)))
    return ", ".join(map(_typed, values, words))


def _typed(value: Value, attributes: Sequence[str] = ()) -> str:
    return " ".join((str(value.type), *attributes, _name(value.name)))


def _label(name: str) -> str:
    return f"label {_name(name)}"


def _name(name: str) -> str:
    """A name in quotes if it needs them, as those that passes make do; a constant as it is."""
    if name[0] not in "%@" or _PLAIN_NAME.match(name):
        return name
    bare = name[1:].replace('"', "")
    return f'{name[0]}"{bare}"'
