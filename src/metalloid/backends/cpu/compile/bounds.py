"""Checks of a kernel's accesses: which, and what launches and messages need to know of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metalloid.compiler.bounds.check_accesses import Checks, check_accesses
from metalloid.compiler.bounds.objects import box_interface, vector_interface
from metalloid.compiler.bounds.sites import Site
from metalloid.compiler.frontend.debug_info import location_of
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
from metalloid.compiler.ir.parser import function_names, parse_function, replace_function, type_of
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain.cache import digest
from metalloid.compiler.transforms.assertions import OUTSIDE
from metalloid.msl.diagnostics import Diagnostic, SourceMap
from metalloid.msl.signature import Signature
from metalloid.msl.tokens import TokenStream

#: The function of one thread of the vector engine (vector.py).
THREAD = "mtl_thread"
_VARIABLE = re.compile(r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*?\b(?:global|constant) ([^\n]*)$', re.M)
_PROMISES = re.compile(r"\b(?:willreturn|mustprogress|nofree|norecurse|nosync) |memory\([^)]*\) ?")
_LENGTH = re.compile(r"\d+")


@dataclass(frozen=True)
class BoundsRequest:
    """The accesses of a kernel that its code checks.

    Attributes
    ----------
    checks : bool
        Whether there are any checks.
    every : bool
        Whether also those that a launch may prove; else only `sites` of them.
    sites : tuple of int
    """

    checks: bool = False
    every: bool = False
    sites: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.checks:
            return "unchecked"
        return "all" if self.every else "checked-" + ",".join(map(str, self.sites))


#: No access is checked.
UNCHECKED = BoundsRequest()


@dataclass(frozen=True)
class BoundsTable:
    """Facts of the checks, as JSON has them.

    Attributes
    ----------
    key : str
        The same for code with the same sites.
    sites : list
        Of each site: word, name and size of its object, node of its range (-2: launches cannot
        prove it), and its accesses: distance, bytes, whether it writes, and its line in the text.
    nodes : list
        Operations of the range program.
    """

    key: str = ""
    sites: tuple[dict[str, Any], ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()


def with_checks(
    ir: str, request: BoundsRequest, signature: Signature, sources: Mapping[str, str], cpp: str
) -> tuple[str, BoundsTable]:
    """A module whose kernel has the requested checks; `cpp` is the text that clang compiled."""
    if not request.checks:
        return ir, BoundsTable()
    is_vector = THREAD in function_names(ir)
    count = len(signature.sources)
    function = parse_function(ir, THREAD if is_vector else ENTRY_SYMBOL, retain_hints=True)
    checks = check_accesses(
        function,
        vector_interface(count) if is_vector else box_interface(count),
        _variable_sizes(ir),
        {p.position: p.layout.bytes for p in signature.arguments if p.layout.form == "reference"},
        lambda number, provable: request.every or not provable or number in request.sites,
        with_ranges=is_vector,
    )
    has_calls = any(i.callee == OUTSIDE for i in function.instructions())
    checked = replace_function(ir, function)
    if has_calls:
        checked = _without_promises(checked, function.attributes)
        checked += f"\ndeclare void {OUTSIDE}(i32, i64, i64) cold noreturn\n"
    return checked, _table(checks, ir, sources, cpp)


def _without_promises(ir: str, attributes: str) -> str:
    """A module whose kernel may end the launch: clang inferred that it returns."""
    for group in re.findall(r"#\d+", attributes):
        pattern = rf"^attributes {group} = .*$"
        ir = re.sub(pattern, lambda match: _PROMISES.sub("", match[0]), ir, flags=re.M)
    return ir


def _variable_sizes(ir: str) -> dict[str, int]:
    sizes = {}
    for name, text in _VARIABLE.findall(ir):
        try:
            sizes[name] = type_of(text, ir).size
        except Unsupported:
            continue
    return sizes


def _table(checks: Checks, ir: str, sources: Mapping[str, str], cpp: str) -> BoundsTable:
    positions = _Positions(ir, sources, cpp)
    sites = tuple(_facts(site, positions) for site in checks.sites)
    shape = [[site["word"], site["name"], site["node"], len(site["accesses"])] for site in sites]
    nodes = tuple((int(n.op) | n.width << 8, n.a, n.b, n.c) for n in checks.program.nodes)
    return BoundsTable(digest(repr(shape)), sites, nodes)


def _facts(site: Site, positions: _Positions) -> dict[str, Any]:
    return {
        "word": site.object.word,
        "name": _shown(site.object.name),
        "bytes": site.object.nbytes,
        "node": site.node,
        "first": site.first,
        "end": site.end,
        "accesses": [
            [access.distance, access.nbytes, access.writes, positions.of(access.debug)]
            for access in site.accesses
        ],
    }


class _Positions:
    """Positions of instructions in the user's texts."""

    def __init__(self, ir: str, sources: Mapping[str, str], cpp: str) -> None:
        self._ir, self._sources, self._cpp = ir, sources, cpp

    @functools.cached_property
    def _map(self) -> SourceMap:
        return SourceMap(TokenStream(self._cpp), self._read)

    def _read(self, file: str) -> str | None:
        source, path = self._sources.get(file), Path(file)
        if source is None and path.exists():  # an included file
            return path.read_text("utf-8", "replace")
        return source

    def of(self, debug: str) -> list[Any] | None:
        """File, line, column and text of the line; None without debug lines."""
        location = location_of(self._ir, debug)
        if location is None:
            return None
        path, file = Path(location.directory, location.file), location.file
        if file not in self._sources and (str(path) in self._sources or path.exists()):
            file = str(path)
        at = self._map.localise(Diagnostic("error", file, location.line, location.column, ""))
        return [file, at.line, at.column, at.source_line]


def _shown(name: str) -> str:
    """The name of a variable in the text, from its name in the module."""
    if name.startswith("%"):
        return re.split(r"\.(?:i|sroa)\b", name[1:])[0]
    bare = re.sub(r"_\d+$|\.\d+$", "", name[1:].strip('"'))
    ends = [(int(match[0]), bare[match.end() :]) for match in _LENGTH.finditer(bare)]
    return next((rest for length, rest in reversed(ends) if len(rest) == length), bare)
