"""Split small vectors into scalars: a ``float4`` of a thread becomes four floats.

Each lane of the vector code is one thread, so its values should be scalars. Extraction, insertion
and shuffles of components then cost nothing; adjacent loads and stores are combined for all lanes
by interleave groups. Structs that are values, such as a choice between two of them, become their
members.
"""

from __future__ import annotations

import re
from dataclasses import replace

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.element_constants import constant_components, constant_members
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import (
    I1,
    I8,
    I64,
    POINTER,
    Float,
    Integer,
    Pointer,
    Struct,
    Type,
    Unsupported,
    Vector,
    bits_of,
)

_LANEWISE = INTEGER_BINARY | FLOAT_BINARY | {"fneg", "freeze", "icmp", "fcmp", "select"}
#: What is done with structs as values. Results of calls and of cmpxchg remain structs.
_OF_STRUCTS = {"extractvalue", "freeze", "insertvalue", "phi", "select"}
_REDUCTION = re.compile(r"@llvm\.vector\.reduce\.(\w+)\.v\d+\w+$")
_REDUCTIONS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "fadd",
    "fmul": "fmul",
}  # fmt: skip
_MIN_MAX = {"smin": "smin", "smax": "smax", "umin": "umin", "umax": "umax", "fmin": "minnum",
            "fmax": "maxnum"}  # fmt: skip
_VECTOR_SUFFIX = re.compile(r"\.v\d+(?=[fib])")


def scalarize_vectors(function: Function) -> None:
    """Replace every value of vector type in `function` by its components.

    Raises
    ------
    Unsupported
        For what cannot be done component by component.
    """
    if any(_has_vectors(instruction) for instruction in function.instructions()):
        _Scalarizer(function).run()


def _has_vectors(instruction: Instruction) -> bool:
    split = (Vector, Struct) if instruction.op in _OF_STRUCTS else Vector
    return isinstance(instruction.type, split) or any(
        isinstance(value.type, split) for value in instruction.operands
    )


def _component_types(type: Type) -> list[Type]:
    """The types of the components, in order."""
    if isinstance(type, Vector):
        return [type.element] * type.lanes
    if isinstance(type, Struct) and not type.packed:
        return [component for member in type.members for component in _component_types(member)]
    if isinstance(type, Integer | Float | Pointer):
        return [type]
    raise Unsupported(f"a value of type {type}")


def _member_components(aggregate: Type, indices: tuple[int, ...]) -> slice:
    """The components of a member of a struct."""
    first = 0
    for index in indices:
        if not isinstance(aggregate, Struct):
            raise Unsupported("a member of an array that is a value")
        first += sum(len(_component_types(member)) for member in aggregate.members[:index])
        aggregate = aggregate.members[index]
    return slice(first, first + len(_component_types(aggregate)))


class _Scalarizer:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._components: dict[str, list[Value]] = {}
        self._alias: dict[str, Value] = {}
        self._out: list[Instruction] = []
        self._count = 0

    def run(self) -> None:
        function = self._function
        order = Graph(function).order
        for name in order:  # phis first: their components are used before their operands are known
            for phi in function.blocks[name].phis:
                if isinstance(phi.type, Vector | Struct):
                    self._components[phi.result] = self._named(phi)
        for name in order:
            block = function.blocks[name]
            body, block.body = block.body, []
            self._out = block.body
            for instruction in body:
                try:
                    self._take(instruction)
                except Unsupported as error:
                    raise error.at(instruction.debug) from None
            block.end.operands = [self._resolved(value) for value in block.end.operands]
        for block in function.blocks.values():
            block.phis = [
                component for phi in block.phis for component in self._phi_components(phi)
            ]

    # -- names

    def _named(self, instruction: Instruction) -> list[Value]:
        types = _component_types(instruction.type)
        return [Value(type, f"{instruction.result}~{i}") for i, type in enumerate(types)]

    def _fresh(self) -> str:
        self._count += 1
        return f"%~{self._count}"

    def _emit(self, op: str, type: Type, operands: list[Value], **more: object) -> Value:
        emitted = Instruction(op, self._fresh(), type, operands, **more)  # type: ignore[arg-type]
        self._out.append(emitted)
        return emitted.value

    def _resolved(self, value: Value) -> Value:
        while value.name in self._alias:
            value = self._alias[value.name]
        if isinstance(value.type, Struct) and value.name in self._components:
            raise Unsupported("a struct as a value")
        return value

    def _components_of(self, value: Value) -> list[Value]:
        if value.name in self._components:
            return [self._resolved(component) for component in self._components[value.name]]
        vector = value.type
        if not isinstance(vector, Vector | Struct):
            return [self._resolved(value)]
        if not value.is_constant:
            raise Unsupported(f"the vector {value.name} before it is computed")
        if isinstance(vector, Struct):
            members = constant_members(value.name, vector)
            return [component for member in members for component in self._components_of(member)]
        return [Value(vector.element, text) for text in constant_components(value.name, vector)]

    def _phi_components(self, phi: Instruction) -> list[Instruction]:
        if not isinstance(phi.type, Vector | Struct):
            phi.operands = [self._resolved(value) for value in phi.operands]
            return [phi]
        incoming = [self._components_of(value) for value in phi.operands]
        return [
            Instruction(
                "phi", component.name, component.type, [values[i] for values in incoming],
                phi.flags, list(phi.labels),
            )
            for i, component in enumerate(self._components[phi.result])
        ]  # fmt: skip

    # -- instructions

    def _take(self, instruction: Instruction) -> None:
        if not _has_vectors(instruction):
            instruction.operands = [self._resolved(value) for value in instruction.operands]
            self._out.append(instruction)
            return
        op = instruction.op
        same_lanes = isinstance(instruction.type, Vector) and all(
            isinstance(value.type, Vector) and value.type.lanes == instruction.type.lanes
            for value in instruction.operands
        )
        if op in _LANEWISE or (op in CASTS and same_lanes):
            self._lanewise(instruction)
        elif op == "bitcast":
            self._bitcast(instruction)
        else:
            handler = getattr(self, f"_{op}", None)
            if handler is None:
                raise Unsupported(f"{op} of a vector")
            handler(instruction)

    def _lanewise(self, instruction: Instruction) -> None:
        self._components[instruction.result] = components = self._named(instruction)
        columns = [
            self._components_of(value)
            if isinstance(value.type, Vector | Struct)
            else [self._resolved(value)] * len(components)
            for value in instruction.operands
        ]
        for i, component in enumerate(components):
            self._out.append(
                replace(
                    instruction,
                    result=component.name,
                    type=component.type,
                    operands=[c[i] for c in columns],
                )
            )

    def _insertvalue(self, instruction: Instruction) -> None:
        aggregate, member = instruction.operands
        self._components[instruction.result] = components = [*self._components_of(aggregate)]
        at = _member_components(aggregate.type, instruction.indices)
        components[at] = self._components_of(member)

    def _extractvalue(self, instruction: Instruction) -> None:
        [aggregate] = instruction.operands
        if aggregate.name not in self._components and not aggregate.is_constant:
            self._out.append(instruction)
            return
        at = _member_components(aggregate.type, instruction.indices)
        components = self._components_of(aggregate)[at]
        if isinstance(instruction.type, Vector | Struct):
            self._components[instruction.result] = components
        else:
            [self._alias[instruction.result]] = components

    def _bitcast(self, instruction: Instruction) -> None:
        """Between vectors of other elements, and between a vector and a number."""
        [source] = [self._resolved(value) for value in instruction.operands]
        components = self._components_of(source) if isinstance(source.type, Vector) else [source]
        target = instruction.type
        element = target.element if isinstance(target, Vector) else target
        width, required = bits_of(components[0].type), bits_of(element)
        if required != width:
            components = [self._cast(component, Integer(width)) for component in components]
            if required > width:
                step = required // width
                components = [
                    self._joined(components[i : i + step], Integer(required))
                    for i in range(0, len(components), step)
                ]
            else:
                components = [
                    self._slice(component, shift, Integer(required))
                    for component in components
                    for shift in range(0, width, required)
                ]
        components = [self._cast(component, element) for component in components]
        if isinstance(target, Vector):
            self._components[instruction.result] = components
        else:
            self._alias[instruction.result] = components[0]

    def _cast(self, value: Value, type: Type) -> Value:
        if value.type == type:
            return value
        if isinstance(value.type, Pointer) or isinstance(type, Pointer):
            return self._emit("ptrtoint" if type != POINTER else "inttoptr", type, [value])
        return self._emit("bitcast", type, [value])

    def _joined(self, components: list[Value], wide: Integer) -> Value:
        total = self._emit("zext", wide, [components[0]])
        for i, component in enumerate(components[1:], 1):
            widened = self._emit("zext", wide, [component])
            shift = Value(wide, str(i * bits_of(component.type)))
            moved = self._emit("shl", wide, [widened, shift])
            total = self._emit("or", wide, [total, moved], flags=("disjoint",))
        return total

    def _slice(self, value: Value, shift: int, narrow: Integer) -> Value:
        if shift:
            value = self._emit("lshr", value.type, [value, Value(value.type, str(shift))])
        return self._emit("trunc", narrow, [value])

    def _load(self, instruction: Instruction) -> None:
        self._components[instruction.result] = components = self._named(instruction)
        [address] = [self._resolved(value) for value in instruction.operands]
        for component, target, align in self._component_addresses(instruction, address, components):
            self._out.append(
                Instruction(
                    "load", component.name, component.type, [target], instruction.flags, align=align
                )
            )

    def _store(self, instruction: Instruction) -> None:
        value, address = instruction.operands
        components = self._components_of(value)
        address = self._resolved(address)
        for component, target, align in self._component_addresses(instruction, address, components):
            self._out.append(
                Instruction(
                    "store", operands=[component, target], flags=instruction.flags, align=align
                )
            )

    def _component_addresses(
        self, access: Instruction, address: Value, components: list[Value]
    ) -> list[tuple[Value, Value, int]]:
        """Each component with its address and alignment."""
        if access.ordering:
            raise Unsupported("an atomic access to a vector")
        if components[0].type == I1:
            raise Unsupported("a vector of bits in memory")
        size = components[0].type.size
        addresses = []
        for i, component in enumerate(components):
            offset = i * size
            target = address
            if offset:
                target = self._emit(
                    "getelementptr", address.type, [address, Value(I64, str(offset))], source=I8
                )
            align = access.align or size
            addresses.append((component, target, min(align, offset & -offset) if offset else align))
        return addresses

    def _extractelement(self, instruction: Instruction) -> None:
        vector, index = (self._resolved(v) for v in instruction.operands)
        components = self._components_of(vector)
        element = index.integer
        if element is not None:
            self._alias[instruction.result] = components[element]
            return
        chosen = components[0]
        for i, component in enumerate(components[1:], 1):
            test = self._equal(index, i)
            chosen = self._emit("select", component.type, [test, component, chosen])
        self._alias[instruction.result] = chosen

    def _insertelement(self, instruction: Instruction) -> None:
        vector, scalar, index = (self._resolved(v) for v in instruction.operands)
        components = list(self._components_of(vector))
        element = index.integer
        if element is not None:
            components[element] = scalar
        else:
            components = [
                self._emit("select", component.type, [self._equal(index, i), scalar, component])
                for i, component in enumerate(components)
            ]
        self._components[instruction.result] = components

    def _equal(self, index: Value, number: int) -> Value:
        operands = [index, Value(index.type, str(number))]
        return self._emit("icmp", I1, operands, predicate="eq")

    def _shufflevector(self, instruction: Instruction) -> None:
        first, second = instruction.operands
        components = self._components_of(first) + self._components_of(second)
        vector = instruction.type
        assert isinstance(vector, Vector)
        poison = Value(vector.element, "poison")
        self._components[instruction.result] = [
            poison if index < 0 else components[index] for index in instruction.mask
        ]

    def _call(self, instruction: Instruction) -> None:
        if isinstance(instruction.type, Vector) and instruction.callee.startswith("@llvm."):
            instruction.callee = _VECTOR_SUFFIX.sub(".", instruction.callee)
            self._lanewise(instruction)
            return
        match = _REDUCTION.match(instruction.callee)
        if match is None:
            raise Unsupported(f"a vector as an argument of {instruction.callee}")
        *start, vector = instruction.operands
        values = [self._resolved(v) for v in start] + self._components_of(vector)
        total = values[0]
        for value in values[1:]:
            if match[1] in _REDUCTIONS:
                total = self._emit(_REDUCTIONS[match[1]], value.type, [total, value])
            elif match[1] in _MIN_MAX:
                suffix = _suffix(value.type)
                callee = f"@llvm.{_MIN_MAX[match[1]]}.{suffix}"
                total = self._emit("call", value.type, [total, value], callee=callee)
            else:
                raise Unsupported(instruction.callee)
        self._alias[instruction.result] = total


def _suffix(type: Type) -> str:
    """The suffix of an intrinsic's name for `type`: ``f32``."""
    if isinstance(type, Float):
        return "bf16" if type.name == "bfloat" else f"f{type.bits}"
    return str(type)
