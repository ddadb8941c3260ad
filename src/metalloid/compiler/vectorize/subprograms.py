"""Debug information of the functions that the vectoriser emits.

Their instructions have the ``!dbg`` attachments of the scalar function's. Each emitted function
gets a ``DISubprogram`` of its own, into which the functions of those locations count as inlined.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from metalloid.compiler.frontend.debug_info import node_text
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import definition, map_functions

_DEBUG = "!dbg"
_ATTACHMENT = re.compile(rf"{_DEBUG} (!\d+)")


@dataclass
class _Nodes:
    """The metadata nodes of a module, and those that are added to it."""

    ir: str
    added: list[str] = field(default_factory=list)

    @functools.cached_property
    def _numbers(self) -> Iterator[int]:
        return itertools.count(1 + max(map(int, re.findall(r"^!(\d+) = ", self.ir, re.M))))

    def add(self, text: str) -> str:
        """Add a node; its name."""
        name = f"!{next(self._numbers)}"
        self.added.append(f"{name} = {text}")
        return name


def with_subprograms(ir: str, scalar: str, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Emitted functions with debug information, and the nodes to add to the module.

    Parameters
    ----------
    ir : str
        The module.
    scalar : str
        Name of the scalar function.
    texts : sequence of str
        Emitted functions.

    Raises
    ------
    Unsupported
        If the module has debug information, and an emitted function does not parse.
    """
    subprogram = _ATTACHMENT.search(definition(ir, scalar).partition("\n")[0])
    if subprogram is None:
        return list(texts), []
    nodes = _Nodes(ir)
    edit = functools.partial(add_subprogram, template=node_text(ir, subprogram[1]), nodes=nodes)
    return [map_functions(text, edit) for text in texts], nodes.added


def add_subprogram(function: Function, template: str, nodes: _Nodes) -> None:
    """Give a function a subprogram, in which the locations of its instructions are inlined.

    Parameters
    ----------
    template : str
        The subprogram of the scalar function.
    """
    own = nodes.add(re.sub(r'\bname: "[^"]*"', f'name: "{function.name}"', template, count=1))
    caller = nodes.add(f"distinct !DILocation(line: 0, scope: {own})")

    @functools.cache
    def inlined(location: str) -> str:
        return nodes.add(_inlined(node_text(nodes.ir, location), caller))

    for instruction in function.instructions():
        if instruction.debug:
            instruction.metadata = tuple(
                (name, inlined(node) if name == _DEBUG else node)
                for name, node in instruction.metadata
            )
        elif instruction.op == "call":
            # LLVM requires a location at each call that it may inline.
            instruction.metadata += ((_DEBUG, caller),)
    function.attributes = f"{function.attributes} {_DEBUG} {own}".lstrip()


def _inlined(location: str, caller: str) -> str:
    """A location whose function is inlined at `caller`."""
    fields = ", ".join(_retained(location))
    return f"!DILocation({fields}, inlinedAt: {caller})"


def _retained(location: str) -> Iterator[str]:
    for name in ("line", "column", "scope"):
        match = re.search(rf"\b{name}: !?\w+", location)
        if match:
            yield match[0]
