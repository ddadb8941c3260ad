"""The checked contract of a kernel: what each parameter is, where its value comes from.

Attributes and names come from the user's tokens; types come from clang, as a table of numbers that
``kernel_entry.h`` leaves in the compiled module.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.dtypes import ScalarType, scalar_of
from metalloid.errors import CompileError
from metalloid.msl.attributes import integer
from metalloid.msl.diagnostics import Diagnostic
from metalloid.msl.entry_points import EntryPoint, Parameter

#: Metal's attributes for values that differ by thread, threadgroup or launch.
IDS = frozenset(
    (
        "dispatch_quadgroups_per_threadgroup",
        "dispatch_simdgroups_per_threadgroup",
        "dispatch_threads_per_threadgroup",
        "grid_origin",
        "grid_size",
        "quadgroup_index_in_threadgroup",
        "quadgroups_per_threadgroup",
        "simdgroup_index_in_threadgroup",
        "simdgroups_per_threadgroup",
        "thread_execution_width",
        "thread_index_in_quadgroup",
        "thread_index_in_simdgroup",
        "thread_index_in_threadgroup",
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "threadgroup_position_in_grid",
        "threadgroups_per_grid",
        "threads_per_grid",
        "threads_per_simdgroup",
        "threads_per_threadgroup",
    )
)
#: Attributes that ask for what no compute device here has.
_UNSUPPORTED = frozenset(("texture", "sampler", "stage_in", "payload", "acceleration_structure"))

_FORMS = ("value", "pointer", "reference")
_SPACES = ("thread", "device", "constant", "threadgroup")
_KINDS = ("O", "b", "i", "u", "f", "V")
#: Numbers per parameter in the module's table (``parameter_layout`` in kernel_entry.h).
LAYOUT_WIDTH = 9


@dataclass(frozen=True)
class Layout:
    """Memory layout of what a parameter points to, as clang sees it.

    Attributes
    ----------
    form : str
        ``"pointer"``, ``"reference"`` or ``"value"``.
    space : str
        ``"device"``, ``"constant"`` or ``"threadgroup"``.
    read_only : bool
    kind : str
        As in `ScalarType`; ``"O"`` for structs and void.
    scalar_bytes, lanes, columns : int
        A ``float3x4`` has scalars of 4 bytes, 4 lanes in 3 columns.
    bytes, alignment : int
        Of one element: a ``uint3`` takes 16 bytes.
    """

    form: str
    space: str
    read_only: bool
    kind: str
    scalar_bytes: int
    lanes: int
    columns: int
    bytes: int
    alignment: int

    @classmethod
    def decode(cls, numbers: Sequence[int]) -> Layout:
        """From a row of the module's table."""
        form, space, read_only, kind, *rest = numbers
        return cls(_FORMS[form], _SPACES[space], bool(read_only), _KINDS[kind], *rest)

    @functools.cached_property
    def scalar(self) -> ScalarType | None:
        """The scalar type; None for structs."""
        return None if self.kind == "O" else scalar_of(self.kind, self.scalar_bytes)


@dataclass(frozen=True)
class BoundParameter:
    """A parameter that a launch must give a value for.

    Attributes
    ----------
    name : str
    declaration : str
        As the author wrote it.
    position : int
        Among all parameters of the kernel.
    index : int
        Its ``[[buffer(n)]]`` or ``[[threadgroup(n)]]``.
    layout : Layout
    """

    name: str
    declaration: str
    position: int
    index: int
    layout: Layout

    @property
    def is_threadgroup(self) -> bool:
        """Whether it is memory of the threadgroup, of which a launch gives only the size."""
        return self.layout.space == "threadgroup"

    @property
    def label(self) -> str:
        """How messages call it."""
        kind = "threadgroup" if self.is_threadgroup else "buffer"
        return f"{self.name or 'parameter'!r} [[{kind}({self.index})]]"


@dataclass(frozen=True)
class Signature:
    """What a kernel wants from a launch.

    Attributes
    ----------
    name : str
        Name of the kernel.
    sources : tuple of str
        Where each of its parameters comes from: ``"memory"``, ``"threadgroup_memory"`` or the name
        of an id.
    buffers : tuple of BoundParameter
        Those that take memory, by buffer index: the order of positional arguments.
    threadgroup : tuple of BoundParameter
        Those that take threadgroup memory, by index.
    max_threads : int or None
        ``[[max_total_threads_per_threadgroup(n)]]``.
    """

    name: str
    sources: tuple[str, ...]
    buffers: tuple[BoundParameter, ...]
    threadgroup: tuple[BoundParameter, ...]
    max_threads: int | None

    def __str__(self) -> str:
        shown = [parameter.declaration for parameter in self.buffers + self.threadgroup]
        return f"{self.name}({', '.join(shown)})"


def parameter_sources(entry: EntryPoint) -> tuple[str, ...]:
    """Where each parameter's value comes from.

    Raises
    ------
    CompileError
        For parameters no launch can fill (textures, stage inputs).
    """
    return tuple(_source(entry, parameter) for parameter in entry.parameters)


def _source(entry: EntryPoint, parameter: Parameter) -> str:
    for name, _ in parameter.attributes:
        if name in IDS:
            return name
        if name in _UNSUPPORTED:
            message = f"parameter {parameter.name!r}: [[{name}]] is not supported"
            diagnostic = Diagnostic("error", entry.file, entry.line, 1, message)
            raise CompileError(str(diagnostic), [diagnostic])
    if parameter.attribute("threadgroup") is not None:
        return "threadgroup_memory"
    return "memory"


def build_signature(entry: EntryPoint, numbers: Sequence[int]) -> Signature:
    """Join what the tokens say with the layouts clang computed.

    Parameters
    ----------
    entry : EntryPoint
    numbers : sequence of int
        The module's table, `LAYOUT_WIDTH` numbers per parameter.
    """
    sources = parameter_sources(entry)
    buffers: list[BoundParameter] = []
    threadgroup: list[BoundParameter] = []
    taken = {i for p in entry.parameters if (i := _explicit_index(p, "buffer")) is not None}
    free = (index for index in range(len(entry.parameters) + len(taken)) if index not in taken)
    for position, (parameter, source) in enumerate(zip(entry.parameters, sources, strict=True)):
        row = numbers[position * LAYOUT_WIDTH : (position + 1) * LAYOUT_WIDTH]
        if source == "memory":
            index = _explicit_index(parameter, "buffer")
            index = next(free) if index is None else index
            into = buffers
        elif source == "threadgroup_memory":
            index = _explicit_index(parameter, "threadgroup") or 0
            into = threadgroup
        else:
            continue
        into.append(
            BoundParameter(
                parameter.name, parameter.declaration, position, index, Layout.decode(row)
            )
        )
    for parameters in (buffers, threadgroup):
        _check_indices(entry, parameters)
    return Signature(
        entry.name,
        sources,
        tuple(sorted(buffers, key=lambda p: p.index)),
        tuple(sorted(threadgroup, key=lambda p: p.index)),
        entry.max_threads,
    )


def _check_indices(entry: EntryPoint, parameters: list[BoundParameter]) -> None:
    seen: dict[int, BoundParameter] = {}
    for parameter in parameters:
        other = seen.setdefault(parameter.index, parameter)
        if other is not parameter:
            message = f"parameters {other.name!r} and {parameter.label} share an index"
            diagnostic = Diagnostic("error", entry.file, entry.line, 1, message)
            raise CompileError(str(diagnostic), [diagnostic])


def _explicit_index(parameter: Parameter, attribute: str) -> int | None:
    text = parameter.attribute(attribute)
    return None if text is None else integer(text)
