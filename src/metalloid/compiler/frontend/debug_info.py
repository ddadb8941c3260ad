"""Debug locations: from ``!dbg`` attachments to files, lines and functions of the MSL source.

The nodes are described in LLVM's *Source Level Debugging* (DILocation, DISubprogram). Modules have
them if clang was asked for ``LINE_TABLES``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: An option of clang's: instructions know their lines.
LINE_TABLES = "-gline-tables-only"

_NODE = re.compile(r"^(!\d+) = (.*)$", re.M)
_LOCATION = re.compile(r"^(!\d+) = ((?:distinct )?!DILocation\(.*\))$", re.M)


@dataclass(frozen=True)
class Location:
    """A position in the source.

    Attributes
    ----------
    file : str
    line, column : int
    function : str
        Its name in the text.
    directory : str
        The directory that `file` is relative to, as clang says: the common part of its path and
        the working directory, if the file has a path.
    """

    file: str
    line: int
    column: int
    function: str
    directory: str = ""


def location_of(ir: str, attachment: str) -> Location | None:
    """Where an instruction comes from.

    Parameters
    ----------
    ir : str
        The module.
    attachment : str
        The node of its ``!dbg``, such as ``"!12"``; empty if it has none.
    """
    node = node_text(ir, attachment) if attachment else ""
    directory, file = _file_of(ir, node)
    if not file:
        return None
    line, column = int(_field(node, "line") or 0), int(_field(node, "column") or 1)
    return Location(file, line, column, _function_of(ir, node), directory) if line else None


def with_user_locations(ir: str, is_user_file: Callable[[Path], bool]) -> str:
    """A module in which inlined library code has the locations of its calls in the user's files.

    Parameters
    ----------
    is_user_file : callable
        Whether a file is the user's.
    """
    nodes = dict(_LOCATION.findall(ir))
    is_of_user = functools.cache(lambda scope: is_user_file(Path(*_file_of(ir, scope))))

    @functools.cache
    def user_location(node: str) -> str:
        caller = _field(node, "inlinedAt")
        if caller not in nodes or is_of_user(node_text(ir, _field(node, "scope"))):
            return node
        return user_location(nodes[caller]).removeprefix("distinct ")

    locations = {name: user_location(node) for name, node in nodes.items() if node[0] != "d"}
    return _LOCATION.sub(lambda match: f"{match[1]} = {locations.get(match[1], match[2])}", ir)


def inlined_locations(ir: str, attachment: str) -> Iterator[Location]:
    """Where an instruction comes from, and then the calls through which it was inlined."""
    while (location := location_of(ir, attachment)) is not None:
        yield location
        attachment = _field(node_text(ir, attachment), "inlinedAt")


def node_text(ir: str, name: str) -> str:
    """The definition of a metadata node; empty if the module has none."""
    return _nodes(ir).get(name, "")


@functools.lru_cache(maxsize=2)  # many nodes of one module are asked for one after the other
def _nodes(ir: str) -> dict[str, str]:
    return dict(_NODE.findall(ir))


@functools.cache
def _pattern(field: str) -> re.Pattern[str]:
    return re.compile(rf'\b{field}: (?:"([^"]*)"|(!?\w+))')


def _field(node: str, name: str) -> str:
    match = _pattern(name).search(node)
    return (match[1] or match[2] or "") if match else ""


def _file_of(ir: str, node: str) -> tuple[str, str]:
    """The directory and the file of a location: those of the scope it is in."""
    while node and not (file := _field(node, "file")):
        node = node_text(ir, _field(node, "scope"))
    location = node_text(ir, file) if node else ""
    directory, name = (
        _field(location, field).replace("\\5C", "\\").replace("\\22", '"')
        for field in ("directory", "filename")
    )
    return directory, name


def _function_of(ir: str, node: str) -> str:
    while node and "!DISubprogram(" not in node:
        node = node_text(ir, _field(node, "scope"))
    return _field(node, "name")
