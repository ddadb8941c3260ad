"""Kernels of a text: their names, parameters and limits."""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter of a kernel as its author wrote it.

    Attributes
    ----------
    name : str
        Empty when the author gave none.
    declaration : str
        Its text without attributes: ``"device float *in"``.
    attributes : tuple of (str, str)
        Name and argument of each of Metal's attributes, ``(("buffer", "0"),)``.
    """

    name: str
    declaration: str
    attributes: tuple[tuple[str, str], ...]

    def attribute(self, name: str) -> str | None:
        """Argument of the attribute `name`; None if the parameter does not carry it."""
        return dict(self.attributes).get(name)


class GroupLimits(NamedTuple):
    """The limits that a kernel declares for its threadgroups.

    Attributes
    ----------
    max_total : int or None
        ``[[max_total_threads_per_threadgroup(n)]]``.
    size : tuple of int or None
        ``[[required_threads_per_threadgroup(x, y, z)]]``.
    """

    max_total: int | None = None
    size: tuple[int, int, int] | None = None


class EntryPoint(NamedTuple):
    """A kernel that a library offers.

    Attributes
    ----------
    name : str
        The name to ask for: ``host_name`` if given, else the function's own.
    expression : str
        What names the function in C++: ``"ns::scale<float>"``.
    parameters : tuple of Parameter
    file, line
        Where it is defined (or instantiated), in the user's own numbering.
    limits : GroupLimits
    """

    name: str
    expression: str
    parameters: tuple[Parameter, ...]
    file: str
    line: int
    limits: GroupLimits
