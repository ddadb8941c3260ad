"""Functions that kernels call: large ones stay functions, and become vector code of their own.

Where all calls were inlined, code that calls a function of a thousand instructions a hundred times
took minutes to compile. A function's vector form has a parameter for the mask of the active lanes.
Its other parameters are vectors, except for

- *private* addresses, those of a thread's own variables, such as of structs that clang passes and
  returns through memory: the address of lane 0, from which the arrays of all lanes are interleaved
  in the caller as in the callee (`private`);
- *uniform* ones, constants at every call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.parser import definition, parse_function, type_of
from metalloid.compiler.ir.types import I1, I32, I64, POINTER, VOID, Struct, Type, Unsupported

#: Flag of the ``alloca`` that represents the array of a private parameter.
PARAMETER = "parameter"
PRIVATE, UNIFORM, VARYING = "private", "uniform", "varying"

#: Functions of our headers that are not inlined: they have a vector form of their own, or are
#: called for each lane (`by_lane`).
_BUILT_IN = re.compile(r"@__|@_ZN9metalloid7by_lane")
_CALL = re.compile(r"^ [^\n]*?\bcall [^\n@]*(@[\w.$]+)\(", re.M)
_DEFINED = re.compile(r"^define [^\n]*?(@[\w.$]+)\(", re.M)
_RESULT = "%mtl.result"


@dataclass(frozen=True)
class Callee:
    """A function that stays a function.

    Attributes
    ----------
    name : str
        With the ``@``.
    kinds : tuple of str
        How each parameter is passed: `PRIVATE`, `UNIFORM` or `VARYING`.
    types : tuple of Type
        What private parameters point to, as far as it is known.
    copies : tuple of bool
        Which arguments the callee has a copy of (``byval``).
    read_only : tuple of bool
        Which parameters nothing is stored through.
    result : Type
        Of a call; results are stored through one more parameter, a private one.
    units : tuple of int
        Bytes of the elements of private arrays; 0 where nothing is accessed.
    """

    name: str
    kinds: tuple[str, ...]
    types: tuple[Type, ...]
    copies: tuple[bool, ...]
    read_only: tuple[bool, ...]
    result: Type
    units: tuple[int, ...] = ()

    @property
    def vector_name(self) -> str:
        """Name of the vector form, without the ``@``."""
        return f"mtl_lanes.{self.name[1:]}"


Callees = Mapping[str, Callee]
NO_CALLEES: Callees = MappingProxyType({})


def callees_of(ir: str, name: str) -> dict[str, Callee]:
    """The functions that a function of a module calls and that the module defines.

    They come in an order in which each stands before those that call it.

    Raises
    ------
    Unsupported
        If a function calls itself, or has a parameter or a result that has no vector form.
    """
    order = _order(ir, f"@{name}")
    if not order:
        return {}
    functions = {each: parse_function(ir, each[1:]) for each in (*order, f"@{name}")}
    calls = _calls(functions)
    private = _private_parameters(functions, calls)

    def kind(function: str, argument: int) -> str:
        if (function, argument) in private:
            return PRIVATE
        given = {call.operands[argument] for _, call in calls[function]}
        return UNIFORM if len(given) == 1 and next(iter(given)).is_constant else VARYING

    return {each: _callee(functions[each], kind, ir) for each in order}


def _callee(function: Function, kind: Callable[[str, int], str], ir: str) -> Callee:
    name = f"@{function.name}"
    texts = [" ".join(words) for words in function.parameter_attributes]
    kinds = [kind(name, argument) for argument in range(len(texts))]
    types = [_pointed_to(text, ir) for text in texts]
    copies = ["byval" in text for text in texts]
    read_only = ["readonly" in text or "readnone" in text for text in texts]
    if function.result is not VOID:
        kinds.append(PRIVATE)
        types.append(I32 if function.result == I1 else function.result)
        copies.append(False)
        read_only.append(False)
    return Callee(
        name, tuple(kinds), tuple(types), tuple(copies), tuple(read_only), function.result
    )


def defined_functions(ir: str) -> frozenset[str]:
    """The functions that a module defines, with the ``@``."""
    return frozenset(_DEFINED.findall(ir))


def calls_of(ir: str, function: str, defined: frozenset[str]) -> list[str]:
    """The functions among those `defined` that a function calls, but for those of our headers."""
    called = dict.fromkeys(_CALL.findall(definition(ir, function[1:])))
    return [name for name in called if name in defined and not _BUILT_IN.match(name)]


def _order(ir: str, name: str) -> list[str]:
    defined = defined_functions(ir)
    reached: list[str] = []
    active: list[str] = []

    def visit(function: str) -> None:
        if function in active:
            raise Unsupported("recursion")
        if function in reached:
            return
        active.append(function)
        for called in calls_of(ir, function, defined):
            visit(called)
        active.pop()
        reached.append(function)

    visit(name)
    return reached[:-1]


def _calls(functions: Mapping[str, Function]) -> dict[str, list[tuple[str, Instruction]]]:
    """Calls of each function: the caller, and the instruction."""
    calls: dict[str, list[tuple[str, Instruction]]] = {name: [] for name in functions}
    for name, function in functions.items():
        for instruction in function.instructions():
            if instruction.op == "call" and instruction.callee in functions:
                calls[instruction.callee].append((name, instruction))
    return calls


def _private_parameters(
    functions: Mapping[str, Function], calls: Mapping[str, list[tuple[str, Instruction]]]
) -> set[tuple[str, int]]:
    """Which pointers are to private memory in every call, by function and position."""
    computed_by = {
        name: {i.result: i for i in function.instructions() if i.result}
        for name, function in functions.items()
    }
    copied = {
        (name, argument)
        for name, function in functions.items()
        for argument, words in enumerate(function.parameter_attributes)
        if "byval" in words
    }
    private = {
        (name, argument)
        for name, function in functions.items()
        for argument, parameter in enumerate(function.parameters)
        if parameter.type is POINTER and calls[name]
    }

    def is_private(caller: str, value: Value) -> bool:
        root = root_of(value, computed_by[caller])
        base = computed_by[caller].get(root.name)
        if base is not None:
            return base.op == "alloca"
        names = [parameter.name for parameter in functions[caller].parameters]
        return root.name in names and (caller, names.index(root.name)) in private

    changed = True
    while changed:
        changed = False
        for name, argument in sorted(private - copied):
            if not all(is_private(caller, call.operands[argument]) for caller, call in calls[name]):
                private.discard((name, argument))
                changed = True
    for name, function in functions.items():
        for argument, parameter in enumerate(function.parameters):
            shared = parameter.type is POINTER and (name, argument) not in private
            if shared and any(
                is_private(calling, call.operands[argument]) for calling, call in calls[name]
            ):
                raise Unsupported("a pointer to private memory at some calls only")
    return private


def root_of(address: Value, computed_by: Mapping[str, Instruction]) -> Value:
    """The address that `address` is a step from."""
    inst = computed_by.get(address.name)
    while inst is not None and inst.op in ("getelementptr", "bitcast"):
        address = inst.operands[0]
        inst = computed_by.get(address.name)
    return address


def _pointed_to(attributes: str, ir: str) -> Type:
    """The type that ``byval`` and ``sret`` name; an empty struct if it is unknown."""
    match = re.search(r"\b(?:byval|sret) \( (.*?) \)(?: |$)", attributes)
    return type_of(match[1], ir) if match else Struct(())


def lower_call_arguments(function: Function, callees: Callees) -> None:
    """Make copies of arguments and the memory of results explicit in the calls of `function`."""
    computed_by = {i.result: i for i in function.instructions() if i.result}
    allocas: list[Instruction] = []

    def new(type: Type) -> Value:
        allocas.append(Instruction("alloca", f"%mtl.argument{len(allocas)}", POINTER, source=type))
        return allocas[-1].value

    for block in function.blocks.values():
        body: list[Instruction] = []
        for call in block.body:
            callee = callees.get(call.callee) if call.op == "call" else None
            if callee is None:
                body.append(call)
                continue
            for argument in _copied(call, callee, computed_by):
                copy, size = new(callee.types[argument]), callee.types[argument].size
                given = [copy, call.operands[argument], Value(I64, str(size)), Value(I1, "false")]
                body.append(Instruction("call", operands=given, callee="@llvm.memcpy.p0.p0.i64"))
                call.operands[argument] = copy
            if callee.result is VOID:
                body.append(call)
                continue
            memory = new(callee.types[-1])
            result, call.result, call.type = call.value, "", VOID
            call.operands.append(memory)
            body.append(call)
            body += _loaded(result, memory)
        block.body = body
    function.entry.body[:0] = allocas


def _copied(
    call: Instruction, callee: Callee, computed_by: Mapping[str, Instruction]
) -> Iterator[int]:
    """Positions of the arguments that have to be copied.

    Those that are the callee's own copies, but for what is private already, and changes only by
    the callee during the call.
    """
    roots = [root_of(value, computed_by).name for value in call.operands]

    def is_parameter(root: str) -> bool:
        base = computed_by.get(root)
        return base is not None and PARAMETER in base.flags

    for argument, root in enumerate(roots):
        if not callee.copies[argument]:
            continue
        base = computed_by.get(root)
        may_change = not callee.read_only[argument] or any(
            other == root or (is_parameter(other) and is_parameter(root))
            for k, other in enumerate(roots)
            if k != argument and not callee.read_only[k]
        )
        if may_change or base is None or base.op != "alloca":
            yield argument


def _loaded(result: Value, memory: Value) -> Iterator[Instruction]:
    """The result of a call from memory."""
    if result.type == I1:
        wide = Instruction("load", f"{result.name}.wide", I32, [memory], align=4)
        yield wide
        yield Instruction("trunc", result.name, I1, [wide.value])
    elif result.name:
        yield Instruction("load", result.name, result.type, [memory], align=1)


def receive(function: Function, callee: Callee) -> None:
    """Let private parameters of `function` be arrays, and store its result through one more."""
    if callee.result is not VOID:
        function.parameters.append(Value(POINTER, _RESULT))
        for number, block in enumerate(function.blocks.values()):
            if block.end.op == "ret":
                _store_result(block.body, block.end.operands[0], number)
                block.end = Instruction("ret")
        function.result = VOID
    arrays, renamed = [], {}
    for argument, parameter in enumerate(function.parameters):
        # The author's name could be one that the vector code has.
        own = renamed[parameter.name] = Value(parameter.type, f"%mtl.parameter{argument}")
        function.parameters[argument] = own
        if callee.kinds[argument] == PRIVATE:
            array = Instruction(
                "alloca", f"{own.name}.array", POINTER, [own], (PARAMETER,),
                source=callee.types[argument],
            )  # fmt: skip
            arrays.append(array)
            renamed[parameter.name] = array.value
    for instruction in function.instructions():
        instruction.operands = [renamed.get(v.name, v) for v in instruction.operands]
    function.entry.body[:0] = arrays


def _store_result(body: list[Instruction], value: Value, number: int) -> None:
    if value.type == I1:
        body.append(Instruction("zext", f"{_RESULT}.{number}", I32, [value]))
        value = body[-1].value
    body.append(Instruction("store", operands=[value, Value(POINTER, _RESULT)], align=1))


def with_units(callee: Callee, function: Function) -> Callee:
    """Insert the call, given the layout of its function's private arrays."""
    units = {
        i.operands[0].name: i.lane_step
        for i in function.instructions()
        if i.op == "alloca" and PARAMETER in i.flags
    }
    return replace(callee, units=tuple(units.get(p.name, 0) for p in function.parameters))


def vector_positions(callee: Callee) -> tuple[int, ...]:
    """Positions of the parameters that are vectors."""
    return tuple(argument for argument, kind in enumerate(callee.kinds) if kind == VARYING)
