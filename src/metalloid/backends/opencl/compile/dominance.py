"""Repair of values that do not dominate all their uses any more, after new edges.

Cheap values that depend on dominating ones alone move up to where they dominate their uses. The
others go through memory, which LLVM's ``mem2reg`` turns into phis: on the paths that do not come
from the definition the value is undefined, and must not matter.
"""

from __future__ import annotations

from collections import defaultdict

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, INTEGER_BINARY
from metalloid.compiler.ir.types import POINTER, Type

_DIVISIONS = {"udiv", "sdiv", "urem", "srem"}
_CHEAP = (INTEGER_BINARY - _DIVISIONS) | CASTS | {
    "icmp", "fcmp", "select", "getelementptr", "extractelement", "insertelement", "shufflevector",
}  # fmt: skip


class Slots:
    """Private variables of a function, in place of values and of what phis get."""

    def __init__(self, function: Function, names: FreshNames) -> None:
        self._entry, self._names = function.entry, names
        self._slots: dict[str, Value] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def of(self, name: str, type: Type) -> Value:
        """The address of the variable for `name`."""
        if name not in self._slots:
            slot = Instruction("alloca", self._names(f"{name}.slot"), POINTER, source=type)
            self._entry.body.insert(0, slot)
            self._slots[name] = slot.value
        return self._slots[name]

    def load(self, name: str, type: Type) -> Instruction:
        """An instruction that reads it."""
        return Instruction("load", self._names(f"{name}.loaded"), type, [self.of(name, type)])

    def store(self, name: str, value: Value) -> Instruction:
        """An instruction that writes it."""
        return Instruction("store", operands=[value, self.of(name, value.type)])


def restore_dominance(function: Function, names: FreshNames, slots: Slots) -> None:
    """Let every value dominate its uses."""
    graph = Graph(function)
    defined = {
        i.result: (i, name)
        for name in graph.order
        for i in function.blocks[name].instructions()
        if i.result
    }
    homes = {value: name for value, (_, name) in defined.items()}
    definitions = {value: i for value, (i, _) in defined.items()}
    broken = _broken_uses(function, graph, homes)
    for name in graph.order:
        for i in function.blocks[name].body[:]:
            if i.result not in broken or not _is_cheap(i, function, definitions):
                continue
            target = name
            while not all(graph.dominates(target, use) for use in broken[i.result]):
                target = graph.dominator[target]
            operands = [homes[v.name] for v in i.operands if v.name in homes]
            if all(graph.dominates(home, target) for home in operands):
                function.blocks[name].body.remove(i)
                function.blocks[target].body.append(i)
                homes[i.result] = target
                del broken[i.result]
    for value, uses in broken.items():
        _through_memory(function, function.blocks[homes[value]], value, uses, slots)


def _is_cheap(i: Instruction, function: Function, definitions: dict[str, Instruction]) -> bool:
    """Whether any thread may compute it anywhere: arithmetic, and loads of the launch's data."""
    if i.op != "load":
        return i.op in _CHEAP
    address = i.operands[0]
    while (step := definitions.get(address.name)) and step.op in (*CASTS, "getelementptr"):
        address = step.operands[0]
    return address == function.parameters[0] and not i.ordering and "volatile" not in i.flags


def _broken_uses(
    function: Function, graph: Graph, homes: dict[str, str]
) -> dict[str, dict[str, None]]:
    """The blocks that use a value at their end (phis) or inside, and that it does not dominate."""
    broken: dict[str, dict[str, None]] = defaultdict(dict)
    for name in graph.order:
        block = function.blocks[name]
        uses = [(value, label) for phi in block.phis
                for value, label in zip(phi.operands, phi.labels, strict=True)]  # fmt: skip
        uses += [(value, name) for i in (*block.body, block.end) for value in i.operands]
        for value, user in uses:
            if value.name in homes and not graph.dominates(homes[value.name], user):
                broken[value.name][user] = None
    return dict(broken)


def _through_memory(
    function: Function, home: Block, name: str, uses: dict[str, None], slots: Slots
) -> None:
    definition = next(i for i in home.instructions() if i.result == name)
    at = 0 if definition in home.phis else home.body.index(definition) + 1
    home.body.insert(at, slots.store(name, definition.value))
    for user in uses:
        block = function.blocks[user]
        loaded = slots.load(name, definition.type)
        for i in (*block.body, block.end):
            i.operands = [loaded.value if v.name == name else v for v in i.operands]
        for successor in block.successors:
            for phi in function.blocks[successor].phis:
                phi.operands = [
                    loaded.value if v.name == name and label == user else v
                    for v, label in zip(phi.operands, phi.labels, strict=True)
                ]
        block.body.insert(0, loaded)
