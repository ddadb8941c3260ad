"""The object that an address points into, and its offset there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from metalloid.compiler.bounds.interface import Interface, MemoryObject, ObjectAddress
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.parser import type_of
from metalloid.compiler.ir.types import I64, Pointer, Unsupported

_VARIABLE = re.compile(r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*?\b(?:global|constant) ([^\n]*)$', re.M)
_CASTS = ("bitcast", "addrspacecast")
_WORD_BYTES = 8
#: Functions of the runtime (native/memory/objects.c): of an address, and of the launch's table.
OFFSET_IN_OBJECT, OBJECT_EXTENT = "@mtl_offset_in_object", "@mtl_object_extent"


def variable_sizes(ir: str) -> dict[str, int]:
    """Bytes of the variables of a module."""
    sizes = {}
    for name, text in _VARIABLE.findall(ir):
        try:
            sizes[name] = type_of(text, ir).size
        except Unsupported:
            continue
    return sizes


@dataclass(eq=False)
class Lookup:
    """A lookup of the object of a pointer.

    Attributes
    ----------
    pointer : Instruction
        That gives the pointer.
    offset, extent : Instruction
        The calls that look up. `check_accesses` tells them the launch's table.
    address : ObjectAddress
        The pointer in its object.
    source : ObjectAddress or None
        Where the pointer is loaded from, if its object is known.
    """

    pointer: Instruction
    offset: Instruction
    extent: Instruction
    address: ObjectAddress
    source: ObjectAddress | None = None


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
        #: Of the pointers whose objects the runtime looks up, by name.
        self.looked_up: dict[str, Lookup] = {}
        self._block_of = {
            phi.result: block for block in function.blocks.values() for phi in block.phis
        }
        self._may_look_up, self._without_slot = False, frozenset[str]()
        if interface.has_lookups:
            self._without_slot = self._mixed_slots()
            self._may_look_up = True

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
            if target is None:
                return None
            if address.name in self.looked_up:
                return self.looked_up[address.name].address
            given = self._interface.pointers.get(address.name)
            return given or ObjectAddress(target, (), self._constant_offset(address))
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
        return {self._object_of(root) for root in self._roots(address)}

    def _roots(self, address: Value) -> list[Value]:
        """The pointers that an address is computed from, whatever the path to it."""
        roots, todo, seen = [], [address], set()
        while todo:
            value = todo.pop()
            if value.name in seen:
                continue
            seen.add(value.name)
            step = self._computed_by.get(value.name)
            if step is not None and step.op == "phi":
                todo += step.operands
            elif step is not None and step.op == "select":
                todo += step.operands[1:]
            elif step is not None and (
                step.op in _CASTS
                or (step.op == "getelementptr" and self._threadgroup_parameter(step) is None)
            ):
                todo.append(step.operands[0])
            else:
                roots.append(value)
        return roots

    def _object_of(self, root: Value) -> MemoryObject | None:
        step = self._computed_by.get(root.name)
        if step is None:
            return self._variable(root)
        if step.op == "alloca":
            return self._private(step)
        if step.op == "getelementptr":
            return self._threadgroup_parameter(step)
        if step.op == "inttoptr":  # the address of a tensor, or one that the kernel computes
            number = self._computed_by.get(step.operands[0].name)
            target = self._loaded(number) if number is not None else None
            return target or self._look_up(step)
        return self._loaded(step)

    def _loaded(self, load: Instruction) -> MemoryObject | None:
        """The object of a pointer that is a word, or in memory that a word points to."""
        if load.op != "load":
            return None
        word = self.word_of(load)
        if word is not None:
            return MemoryObject("", word, 0)
        slot = self._slot_of(load)
        if slot is not None and load.result not in self._without_slot:
            return MemoryObject("", slot[0], 0, slot[1])
        return self._look_up(load)

    def _slot_of(self, load: Instruction) -> tuple[int, int] | None:
        base, distance = self._steps(load.operands[0])
        step = self._computed_by.get(base.name)
        word = None if step is None else self.word_of(step)
        if word is None or distance is None or (word, distance) not in self._interface.slots:
            return None
        return word, distance

    def _look_up(self, pointer: Instruction) -> MemoryObject | None:
        """The object that the runtime looks up at a pointer."""
        is_known = pointer.op in ("load", "inttoptr") and isinstance(pointer.type, Pointer)
        if not (is_known and self._interface.has_lookups) or self._is_opaque(pointer.operands[0]):
            return None
        if not self._may_look_up:
            return MemoryObject(pointer.result, -1, 0)
        name = pointer.result
        if name not in self.looked_up:
            lookup = self.looked_up[name] = self._insert_lookup(pointer)
            if pointer.op == "load":  # from memory that may be that of the pointer itself
                lookup.source = self.locate(pointer.operands[0])
        return self.looked_up[name].address.object

    def _insert_lookup(self, pointer: Instruction) -> Lookup:
        at = Instruction("ptrtoint", self.names("%mtl.lookup"), I64, [pointer.value])
        offset, extent = (
            Instruction("call", self.names(f"{pointer.result}{what}"), I64,
                        [at.value, Value(I64, "0")], callee=callee)
            for what, callee in ((".offset", OFFSET_IN_OBJECT), (".extent", OBJECT_EXTENT))
        )  # fmt: skip
        block = next(each for each in self._function.blocks.values() if pointer in each.body)
        after = block.body.index(pointer) + 1
        block.body[after:after] = [at, offset, extent]
        address = ObjectAddress(MemoryObject(extent.result, -1, 0), ((offset.value, 1),), 0)
        return Lookup(pointer, offset, extent, address)

    def _is_opaque(self, address: Value) -> bool:
        """Whether an address may be in memory of textures or of the runtime."""
        todo, seen = [address], set()
        while todo:
            address = todo.pop()
            for root in self._roots(address):
                step = self._computed_by.get(root.name)
                word = None if step is None else self.word_of(step)
                if word is not None:
                    is_opaque = self._is_of_texture(word, self._distance(address))
                elif step is None:  # of the launch, or of a function that kernels call
                    is_opaque = root.name[0] == "%" and (
                        root.name not in self._interface.pointers or bool(self._interface.opaque)
                    )
                else:  # textures may be copied to private memory
                    is_opaque = step.op == "alloca" and bool(self._interface.opaque)
                if is_opaque:
                    return True
                if step is not None and word is None and step.op == "load":
                    todo += [] if root.name in seen else step.operands
                    seen.add(root.name)
        return False

    def _is_of_texture(self, word: int, distance: int | None) -> bool:
        """Whether memory that a word points to has a texture there."""
        return any(
            word == of and (distance is None or (distance - offset) % step == 0)
            for of, step, offset in self._interface.opaque
        )

    def _distance(self, address: Value) -> int | None:
        """The sum of the constant distances of an address; None if there are several paths."""
        distance = 0
        while True:
            step = self._computed_by.get(address.name)
            if step is None or step.op not in ("getelementptr", *_CASTS):
                return None if step is not None and step.op in ("phi", "select") else distance
            if step.op == "getelementptr":
                distance += gep_terms(step)[0]
            address = step.operands[0]

    def _mixed_slots(self) -> frozenset[str]:
        """Pointers with slots, instead of which there may be another pointer."""
        mixed: set[str] = set()
        for step in self._function.instructions():
            if step.op in ("phi", "select") and isinstance(step.type, Pointer):
                objects = self._objects_of(step.value)
                if len(objects) > 1 and any(each and each.slot >= 0 for each in objects):
                    mixed.update(root.name for root in self._roots(step.value))
        return frozenset(mixed)

    def _variable(self, value: Value) -> MemoryObject | None:
        if value.name[0] == "%":
            given = self._interface.pointers.get(value.name)
            return None if given is None else given.object
        name, _ = variable_of(value.name)
        size = self._sizes.get(name)
        return MemoryObject(name, -1, size) if size else None

    def _private(self, alloca: Instruction) -> MemoryObject | None:
        count = alloca.operands[0].integer if alloca.operands else 1
        return (count and MemoryObject(alloca.result, -1, count * alloca.source.size)) or None

    def _is_pointer(self, value: Value, pointer: tuple[int, int]) -> bool:
        """Whether a value is a pointer of the interface."""
        position, offset = pointer
        if position < 0:
            return False
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
        base, distance = self._steps(step.operands[0])
        variable = self._interface.memory_variable
        if (
            len(step.operands) != 2
            or distance != 0
            or not (
                variable_of(base.name)[0] == variable
                if variable
                else self._is_pointer(base, self._interface.memory)
            )
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
