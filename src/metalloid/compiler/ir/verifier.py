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
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.type_rules import constant_error, type_error
from metalloid.compiler.ir.types import VOID, Type

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
        """The errors, in words; slow only if there are any."""
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
            yield f"{block.name} ends with {block.end.op}, which is not a terminator"
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
        required = {"br": 1 + len(end.operands), "switch": 1 + len(end.cases)}.get(end.op, 0)
        if len(end.labels) != required:
            yield f"{block.name}: {end.op} with {len(end.labels)} targets instead of {required}"
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
                known = definitions.get(name)
                if known is None:
                    yield i, f"{name} is not defined"
                    continue
                defined, home, index = known
                if defined is not type_ and defined != type_:
                    yield i, f"{name} is of type {defined}"
                if home == here:
                    dominates = index < position
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
