"""Accesses in functions that kernels call and that are not inlined.

Their pointers are parameters. Such a parameter gets two more, the offset and the extent in its
object, unless all calls give the same constants. So a function checks its accesses as a kernel
does, against the extents that its callers know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from metalloid.compiler.bounds.interface import Interface, MemoryObject, ObjectAddress
from metalloid.compiler.bounds.objects import Addresses
from metalloid.compiler.bounds.sites import Site, sites_of
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.types import I32, I64, Pointer
from metalloid.compiler.transforms.callees import calls_of, defined_functions

#: The parameter with the index of the thread, of functions that kernels call.
THREAD = Value(I32, "%mtl.thread")


@dataclass
class CheckedFunction:
    """A kernel or a function that it calls.

    Attributes
    ----------
    function : Function
    addresses : Addresses
    interface : Interface
    sites : list of Site
    thread : Value or None
        The index of the thread, if reports say it.
    added : tuple of int
        Positions of the pointers whose offset and extent are parameters.
    calls : list of (Instruction, CheckedFunction)
        Of the functions that it calls.
    """

    function: Function
    addresses: Addresses
    interface: Interface
    sites: list[Site] = field(default_factory=list)
    thread: Value | None = None
    added: tuple[int, ...] = ()
    calls: list[tuple[Instruction, CheckedFunction]] = field(default_factory=list)


def called_functions(ir: str, name: str) -> list[Function]:
    """The functions that a function of a module calls; callers come first, where none recurs."""
    defined = defined_functions(ir)
    reached: list[str] = []

    def visit(function: str, active: frozenset[str]) -> None:
        if function not in reached and function not in active:
            for called in calls_of(ir, function, defined):
                visit(called, active | {function})
            reached.append(function)

    visit(f"@{name}", frozenset())
    return [parse_function(ir, each[1:], retain_hints=True) for each in reached[-2::-1]]


def check_callees(
    kernel: CheckedFunction, called: Sequence[Function], sizes: Mapping[str, int]
) -> list[CheckedFunction]:
    """Functions that a kernel calls, with the parameters that their checks need.

    Parameters
    ----------
    kernel : CheckedFunction
    called : sequence of Function
        As `called_functions` gives them.
    sizes : mapping
        Bytes of the module's variables.
    """
    every = [kernel]
    names = {f"@{function.name}" for function in called}
    for number, function in enumerate(called):
        # Calls by itself, and by what it calls, have not been located yet.
        recurs = any(c.callee == f"@{function.name}" for f in called[number:] for c in _calls(f))
        every.append(_checked(function, every, recurs, sizes))
    by_name = {f"@{each.function.name}": each for each in every[1:]}
    for each in every:
        each.calls = [(c, by_name[c.callee]) for c in _calls(each.function) if c.callee in names]
    return every[1:]


def _calls(function: Function) -> list[Instruction]:
    return [i for i in function.instructions() if i.op == "call"]


def _checked(
    function: Function, callers: Sequence[CheckedFunction], recurs: bool, sizes: Mapping[str, int]
) -> CheckedFunction:
    """A function, by its calls from `callers`, of which the kernel is the first."""
    name, kernel = f"@{function.name}", callers[0]
    calls = [
        (caller.addresses, call)
        for caller in callers for call in _calls(caller.function) if call.callee == name
    ]  # fmt: skip
    pointers: dict[str, ObjectAddress] = {}
    added: list[int] = []
    for position, parameter in enumerate([*function.parameters]):
        if not isinstance(parameter.type, Pointer):
            continue
        located = [addresses.locate(call.operands[position]) for addresses, call in calls]
        known = None if recurs else _same_location(located)
        if known is not None:
            target = MemoryObject(parameter.name, -1, known.object.nbytes)
            pointers[parameter.name] = ObjectAddress(target, (), known.distance)
        elif recurs or any(located):
            added.append(position)
            offset = Value(I64, f"{parameter.name}.mtl.offset")
            target = MemoryObject(f"{parameter.name}.mtl.extent", -1, 0)
            pointers[parameter.name] = ObjectAddress(target, ((offset, 1),), 0)
            _add_parameters(function, offset, Value(I64, target.name))
    thread = None
    if kernel.thread is not None:
        thread = THREAD
        _add_parameters(function, thread)
    interface = Interface(
        (-1, -1), (-1, -1), 0, (), "", kernel.interface.opaque,
        has_lookups=kernel.interface.has_lookups, pointers=pointers,
    )  # fmt: skip
    addresses = Addresses(function, interface, sizes)
    sites = list(sites_of(function, addresses, {}))
    return CheckedFunction(function, addresses, interface, sites, thread, tuple(added))


def _add_parameters(function: Function, *parameters: Value) -> None:
    function.parameters += parameters
    function.parameter_attributes += [[] for _ in parameters]


def _same_location(located: Sequence[ObjectAddress | None]) -> ObjectAddress | None:
    """The distance in objects of one size where all addresses are, if it is one."""
    first, *others = located or [None]
    if first is None or first.terms or not first.object.nbytes:
        return None
    location = first.object.nbytes, first.distance
    is_same = all(
        each is not None and not each.terms and (each.object.nbytes, each.distance) == location
        for each in others
    )
    return first if is_same else None
