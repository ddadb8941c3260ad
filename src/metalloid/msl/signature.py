"""The checked contract of a kernel: what each parameter is, where its value comes from.

Attributes and names come from the user's tokens; types come from clang (`metalloid.msl.layout`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from metalloid.errors import CompileError
from metalloid.msl.entry_points import EntryPoint, GroupLimits, Parameter
from metalloid.msl.integers import integer_value
from metalloid.msl.layout import Layout, read_layouts

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


#: Attributes of parameters that are supported.
_SUPPORTED = frozenset(("buffer", "texture", "sampler", "threadgroup", "function_constant"))
#: Sources for which a launch gives a value.
_GIVEN = ("memory", "threadgroup_memory")
#: Memory of the threadgroup, with or without an attribute that numbers it.
_THREADGROUP = r"\bthreadgroup\b"


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
        Its ``[[buffer(n)]]``, ``[[texture(n)]]``, ``[[sampler(n)]]`` or ``[[threadgroup(n)]]``.
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
    def resource(self) -> str:
        """The attribute whose index it has: ``"buffer"``, ``"texture"`` ..."""
        if self.layout.form in ("texture", "sampler"):
            return self.layout.form
        return "threadgroup" if self.is_threadgroup else "buffer"

    @property
    def label(self) -> str:
        """The name for messages."""
        return f"{self.name or 'parameter'!r} [[{self.resource}({self.index})]]"


class Signature(NamedTuple):
    """The parameters of a kernel that a launch has to bind.

    Attributes
    ----------
    name : str
        Name of the kernel.
    sources : tuple of str
        Where each of its parameters comes from: ``"memory"``, ``"threadgroup_memory"`` or the name
        of an id.
    arguments : tuple of BoundParameter
        Those that a launch gives a value for, in the order of positional arguments: as the text
        declares them, but buffers among each other by index, and so textures and samplers.
    threadgroup : tuple of BoundParameter
        Those that take threadgroup memory, by index.
    absent : tuple of str
        Names of those that function constants leave out.
    limits : GroupLimits
        What the text says of its threadgroups.
    """

    name: str
    sources: tuple[str, ...]
    arguments: tuple[BoundParameter, ...]
    threadgroup: tuple[BoundParameter, ...]
    absent: tuple[str, ...]
    limits: GroupLimits

    @property
    def buffers(self) -> tuple[BoundParameter, ...]:
        """Parameters that take memory, by index."""
        return self._of("buffer")

    @property
    def textures(self) -> tuple[BoundParameter, ...]:
        """Parameters that take textures, by index."""
        return self._of("texture")

    @property
    def samplers(self) -> tuple[BoundParameter, ...]:
        """Parameters that take samplers, by index."""
        return self._of("sampler")

    def _of(self, resource: str) -> tuple[BoundParameter, ...]:
        return tuple(p for p in self.arguments if p.resource == resource)

    def __str__(self) -> str:
        shown = [parameter.declaration for parameter in self.arguments + self.threadgroup]
        return f"{self.name}({', '.join(shown)})"


def parameter_sources(entry: EntryPoint) -> tuple[str, ...]:
    """Where each parameter's value comes from.

    Raises
    ------
    CompileError
        For parameters no launch can fill (stage inputs).
    """
    return tuple(_source(entry, parameter) for parameter in entry.parameters)


def entry_inputs(entry: EntryPoint) -> Iterator[str]:
    """The same as C++ text for ``kernel_entry.h``, which finds the omitted parameters.

    Raises
    ------
    CompileError
        As `parameter_sources`.
    """
    for parameter, source in zip(entry.parameters, parameter_sources(entry), strict=True):
        condition = parameter.attribute("function_constant")
        text = f"metalloid::input::{source}"
        if condition is not None and source in _GIVEN:
            text = f"METALLOID_INPUT_IF({condition}, {text})"
        yield text


def _source(entry: EntryPoint, parameter: Parameter) -> str:
    for name, _ in parameter.attributes:
        if name in IDS:
            return name
        if name in _SUPPORTED:
            continue
        from metalloid.msl.features import refusal  # here, as bundles of kernels load without it

        if message := refusal(name):
            raise _error(entry, message)
    if parameter.attribute("threadgroup") is not None or re.search(
        _THREADGROUP, parameter.declaration
    ):
        return "threadgroup_memory"
    return "memory"


def build_signature(entry: EntryPoint, numbers: Sequence[int]) -> Signature:
    """Join what the tokens say with the layouts clang computed.

    Parameters
    ----------
    entry : EntryPoint
    numbers : sequence of int
        The module's table (`read_layouts`).
    """
    sources = parameter_sources(entry)
    bound: dict[str, list[BoundParameter]] = {}
    declared: list[str] = []
    absent: list[str] = []
    for position, (parameter, source, layout) in enumerate(
        zip(entry.parameters, sources, read_layouts(numbers), strict=True)
    ):
        if source not in _GIVEN:
            continue
        if layout.form == "absent":
            absent.append(parameter.name)
            continue
        resolved = BoundParameter(parameter.name, parameter.declaration, position, 0, layout)
        index = _explicit_index(parameter, resolved.resource)
        if index is None:
            index = _free_index(entry, resolved.resource, bound)
        bound.setdefault(resolved.resource, []).append(replace(resolved, index=index))
        declared.append(resolved.resource)
    for parameters in bound.values():
        _check_indices(entry, parameters)
        parameters.sort(key=lambda p: p.index)
    by_index = {resource: iter(parameters) for resource, parameters in bound.items()}
    ordered = [next(by_index[resource]) for resource in declared]
    return Signature(
        entry.name,
        sources,
        tuple(p for p in ordered if not p.is_threadgroup),
        tuple(p for p in ordered if p.is_threadgroup),
        tuple(absent),
        entry.limits,
    )


def _free_index(entry: EntryPoint, resource: str, bound: dict[str, list[BoundParameter]]) -> int:
    """The lowest index that no parameter asks for and no earlier one was given."""
    taken = {_explicit_index(parameter, resource) for parameter in entry.parameters}
    taken |= {parameter.index for parameter in bound.get(resource, ())}
    return next(index for index in itertools.count() if index not in taken)


def _check_indices(entry: EntryPoint, parameters: list[BoundParameter]) -> None:
    seen: dict[int, BoundParameter] = {}
    for parameter in parameters:
        other = seen.setdefault(parameter.index, parameter)
        if other is not parameter:
            message = f"parameters {other.name!r} and {parameter.label} share an index"
            raise _error(entry, message)


def _error(entry: EntryPoint, message: str) -> CompileError:
    from metalloid.msl.diagnostics import Diagnostic

    diagnostic = Diagnostic("error", entry.file, entry.line, 1, message)
    return CompileError(str(diagnostic), [diagnostic])


def _explicit_index(parameter: Parameter, attribute: str) -> int | None:
    text = parameter.attribute(attribute)
    return None if text is None else integer_value(text)
