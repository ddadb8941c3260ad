"""The object that an address points into, and its offset there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.parser import type_of
from metalloid.compiler.ir.types import I64, Unsupported

_VARIABLE = re.compile(r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*?\b(?:global|constant) ([^\n]*)$', re.M)
_CASTS = ("bitcast", "addrspacecast")
_WORD_BYTES = 8


@dataclass(frozen=True)
class Interface:
    """The pointers through which a function gets at its launch.

    Attributes
    ----------
    words : tuple of (int, int)
        The pointer to the words of the launch: position of a parameter; where the pointer is loaded
        from memory that the parameter points to, the offset of it there, else -1.
    memory : tuple of (int, int)
        The same of the pointer to threadgroup memory.
    count : int
        The number of words of parameters; those of extents follow them.
    slots : tuple of (int, int)
        Pointers in the memory of parameters: the position of the word, and the offset there. Two
        words of each follow the extents: bytes of the memory before the pointer, and in all.
    memory_variable : str
        The variable that is threadgroup memory, instead of a pointer to it.
    """

    words: tuple[int, int]
    memory: tuple[int, int]
    count: int
    slots: tuple[tuple[int, int], ...] = ()
    memory_variable: str = ""


def vector_interface(count: int, slots: tuple[tuple[int, int], ...] = ()) -> Interface:
    """The interface of the vector engine's function of one thread (rows.h)."""
    return Interface((1, -1), (2, -1), count, slots)


def box_interface(count: int, slots: tuple[tuple[int, int], ...] = ()) -> Interface:
    """The interface of the reference engine's entry (abi.h): mtl_launch and mtl_range."""
    return Interface((0, 0), (1, 48), count, slots)


def simt_interface(
    memory_variable: str, count: int, slots: tuple[tuple[int, int], ...] = ()
) -> Interface:
    """The interface of the entry for GPUs, whose only parameter begins with the words."""
    return Interface((0, -1), (-1, 0), count, slots, memory_variable)


def variable_sizes(ir: str) -> dict[str, int]:
    """Bytes of the variables of a module."""
    sizes = {}
    for name, text in _VARIABLE.findall(ir):
        try:
            sizes[name] = type_of(text, ir).size
        except Unsupported:
            continue
    return sizes


@dataclass(frozen=True)
class MemoryObject:
    """An object that kernels access.

    Attributes
    ----------
    name : str
        Of a variable, in the module; of one of several objects, its extent; empty for parameters.
    word : int
        Of a parameter, its position; else -1.
    nbytes : int
        Size of a variable; 0 for others, whose extents are known at run time.
    slot : int
        The offset, in the memory of the parameter, of the pointer to it; -1 if the word points to
        it.
    """

    name: str
    word: int
    nbytes: int
    slot: int = -1

    @property
    def is_word(self) -> bool:
        """Whether it is memory that a word of the launch points to."""
        return self.word >= 0 and self.slot < 0

    @property
    def is_selected(self) -> bool:
        """Whether it is one of several objects."""
        return self.word < 0 and not self.nbytes


@dataclass(frozen=True)
class ObjectAddress:
    """An address as an object and an offset.

    Attributes
    ----------
    object : MemoryObject
    terms : tuple of (Value, int)
        Indices and what each is multiplied by; their sum and `distance` are the offset in bytes.
    distance : int
    """

    object: MemoryObject
    terms: tuple[tuple[Value, int], ...]
    distance: int


class Addresses:
    """Finds the objects and the offsets of addresses in one function.

    A phi of addresses gets a phi of offsets, which is added to the function.

    Parameters
    ----------
    function : Function
    interface : Interface
    sizes : mapping
        Bytes of each variable of the module.
    """

    def __init__(self, function: Function, interface: Interface, sizes: Mapping[str, int]) -> None:
        self._function, self._interface, self._sizes = function, interface, sizes
        self._computed_by = {i.result: i for i in function.instructions() if i.result}
        self.names = FreshNames(function)
        self._known: dict[str, ObjectAddress | None] = {}
        self._objects: dict[str, MemoryObject | None] = {}
        #: Phis and selects of addresses of several objects; these in the order of the operands;
        #: and the name of the extent, which is not in the function yet.
        self.selected: list[tuple[Instruction, list[MemoryObject], str]] = []
        self._block_of = {
            phi.result: block for block in function.blocks.values() for phi in block.phis
        }

    def computed_by(self, value: Value) -> Instruction | None:
        """The instruction that computes a value."""
        return self._computed_by.get(value.name)

    def locate(self, address: Value) -> ObjectAddress | None:
        """The object and the offset of an address; None if its object is unknown."""
        if address.name not in self._known:
            self._known[address.name] = self._find(address)
        return self._known[address.name]

    def _find(self, address: Value) -> ObjectAddress | None:
        step = self._computed_by.get(address.name)
        if step is None or step.op in ("alloca", "load", "inttoptr"):
            target = self._object(address)
            return (
                None
                if target is None
                else ObjectAddress(target, (), self._constant_offset(address))
            )
        if step.op in _CASTS:
            return self.locate(step.operands[0])
        if step.op == "getelementptr":
            threadgroup = self._threadgroup_parameter(step)
            if threadgroup is not None:
                return ObjectAddress(threadgroup, (), 0)
            base = self.locate(step.operands[0])
            if base is None:
                return None
            try:
                distance, variable = gep_terms(step)
            except Unsupported:
                return None
            if any(index.type.size not in (4, 8) for index, _ in variable):
                return None
            return ObjectAddress(base.object, (*base.terms, *variable), base.distance + distance)
        if step.op in ("phi", "select"):
            objects = self._objects_of(address)
            if any(each is None or (each.slot >= 0 and len(objects) > 1) for each in objects):
                return None
            return self._joined(step, objects.pop() if len(objects) == 1 else None)
        return None

    def _constant_offset(self, address: Value) -> int:
        return variable_of(address.name)[1] if address.name[0] != "%" else 0

    def _object(self, address: Value) -> MemoryObject | None:
        """The object of an address; one, whatever the path to it."""
        objects = self._objects_of(address)
        return objects.pop() if len(objects) == 1 else None

    def _objects_of(self, address: Value) -> set[MemoryObject | None]:
        """The objects of an address, whatever the path to it."""
        objects: set[MemoryObject | None] = set()
        todo, seen = [address], set()
        while todo:
            value = todo.pop()
            if value.name in seen:
                continue
            seen.add(value.name)
            step = self._computed_by.get(value.name)
            if step is None:
                objects.add(self._variable(value))
            elif step.op == "alloca":
                objects.add(self._private(step))
            elif step.op == "load":
                objects.add(self._loaded(step))
            elif step.op == "inttoptr":  # the address of a tensor
                number = self._computed_by.get(step.operands[0].name)
                objects.add(self._loaded(number) if number is not None else None)
            elif step.op == "getelementptr":
                threadgroup = self._threadgroup_parameter(step)
                if threadgroup is not None:
                    objects.add(threadgroup)
                else:
                    todo.append(step.operands[0])
            elif step.op in _CASTS:
                todo.append(step.operands[0])
            elif step.op == "phi":
                todo += step.operands
            elif step.op == "select":
                todo += step.operands[1:]
            else:
                objects.add(None)
        return objects

    def _loaded(self, load: Instruction) -> MemoryObject | None:
        """The object of a pointer that is a word, or in memory that a word points to."""
        if load.op != "load":
            return None
        word = self.word_of(load)
        if word is not None:
            return MemoryObject("", word, 0)
        base, distance = self._steps(load.operands[0])
        step = self._computed_by.get(base.name)
        word = None if step is None else self.word_of(step)
        if word is None or distance is None or (word, distance) not in self._interface.slots:
            return None
        return MemoryObject("", word, 0, distance)

    def _variable(self, value: Value) -> MemoryObject | None:
        if value.name[0] == "%":
            return None
        name, _ = variable_of(value.name)
        size = self._sizes.get(name)
        return MemoryObject(name, -1, size) if size else None

    def _private(self, alloca: Instruction) -> MemoryObject | None:
        count = alloca.operands[0].integer if alloca.operands else 1
        return (count and MemoryObject(alloca.result, -1, count * alloca.source.size)) or None

    def _is_pointer(self, value: Value, pointer: tuple[int, int]) -> bool:
        """Whether a value is a pointer of the interface."""
        position, offset = pointer
        parameter = self._function.parameters[position].name
        if offset < 0:
            return value.name == parameter
        load = self._computed_by.get(value.name)
        if load is None or load.op != "load":
            return False
        base, distance = self._steps(load.operands[0])
        return base.name == parameter and distance == offset

    def _steps(self, address: Value) -> tuple[Value, int | None]:
        """The pointer that an address is at a constant distance from."""
        distance = 0
        while True:
            step = self._computed_by.get(address.name)
            if step is None or step.op not in ("getelementptr", *_CASTS):
                return address, distance
            if step.op == "getelementptr":
                constant, variable = gep_terms(step)
                if variable:
                    return address, None
                distance += constant
            address = step.operands[0]

    def word_of(self, load: Instruction) -> int | None:
        """The position of the word that an instruction loads; None if it loads none."""
        if load.op != "load" or load.type.size != _WORD_BYTES:
            return None
        base, distance = self._steps(load.operands[0])
        if distance is None or distance < 0 or distance % _WORD_BYTES:
            return None
        word = distance // _WORD_BYTES
        if word >= self._interface.count or not self._is_pointer(base, self._interface.words):
            return None
        return word

    def distance_from(self, address: Value, parameter: str) -> int | None:
        """The constant distance of an address from a parameter of the function."""
        base, distance = self._steps(address)
        return distance if base.name == parameter else None

    def _threadgroup_parameter(self, step: Instruction) -> MemoryObject | None:
        """The object of threadgroup memory plus a word, which is its offset there."""
        base = step.operands[0]
        variable = self._interface.memory_variable
        if len(step.operands) != 2 or not (
            variable_of(base.name)[0] == variable
            if variable
            else self._is_pointer(base, self._interface.memory)
        ):
            return None
        word = self._computed_by.get(step.operands[1].name)
        if word is not None and word.op == "ptrtoint":
            word = self._computed_by.get(word.operands[0].name)
        position = None if word is None else self.word_of(word)
        return None if position is None else MemoryObject("", position, 0)

    # -- phis and selects of addresses

    def _joined(self, step: Instruction, target: MemoryObject | None) -> ObjectAddress:
        """The address that a phi or select is, in an object or in one of several."""
        offset = Instruction(step.op, self.names(f"{step.result}.offset"), I64)
        selected: list[MemoryObject] | None = None
        if target is None:
            selected, extent = [], self.names(f"{step.result}.extent")
            target = MemoryObject(extent, -1, 0)
            self.selected.append((step, selected, extent))
        located = ObjectAddress(target, ((offset.value, 1),), 0)
        self._known[step.result] = located  # a loop comes back to it
        self._computed_by[offset.result] = offset
        if selected is not None:
            given = step.operands if step.op == "phi" else step.operands[1:]
            located_operands = map(self.locate, given)
            selected += [each.object for each in located_operands if each is not None]
        if step.op == "select":
            block = next(b for b in self._function.blocks.values() if step in b.body)
            body: list[Instruction] = []
            operands = [self._offset(value, body) for value in step.operands[1:]]
            offset.operands = [step.operands[0], *operands]
            at = block.body.index(step)
            block.body[at:at] = [*body, offset]
            return located
        block = self._block_of[step.result]
        offset.labels = list(step.labels)
        for value, label in zip(step.operands, step.labels, strict=True):
            offset.operands.append(self._offset(value, self._function.blocks[label].body))
        block.phis.append(offset)
        return located

    def _offset(self, address: Value, body: list[Instruction]) -> Value:
        located = self.locate(address)
        if located is None:
            raise Unsupported("an address of two objects")
        return self.materialize(located.terms, located.distance, body)

    def materialize(
        self, terms: tuple[tuple[Value, int], ...], distance: int, body: list[Instruction]
    ) -> Value:
        """The sum of `terms` and `distance`, computed by instructions that are added to `body`."""
        total = Value(I64, str(distance))

        def add(op: str, left: Value, right: Value) -> Value:
            new = Instruction(op, self.names("%mtl.offset"), I64, [left, right])
            body.append(new)
            self._computed_by[new.result] = new
            return new.value

        for index, size in terms:
            wide = index
            if index.type != I64:
                widened = Instruction("sext", self.names("%mtl.index"), I64, [index])
                body.append(widened)
                self._computed_by[widened.result] = widened
                wide = widened.value
            factor = wide if size == 1 else add("mul", wide, Value(I64, str(size)))
            total = factor if total.integer == 0 else add("add", factor, total)
        return total
