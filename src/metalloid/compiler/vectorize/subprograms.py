"""Debug information of the functions that the vectoriser emits.

Their instructions have the ``!dbg`` attachments of the scalar function's. Each emitted function
gets a ``DISubprogram`` of its own, into which the functions of those locations count as inlined.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from metalloid.compiler.frontend.debug_info import node_text

_ATTACHMENT = re.compile(r"!dbg (!\d+)")
_DEFINITION = re.compile(r"^define [^\n]*?@([\w.]+)\([^\n]*(?= \{$)", re.M)
_CALL_WITHOUT = re.compile(r"^( (?:[^\n](?!!dbg))*\bcall (?:[^\n](?!!dbg))*)$", re.M)
_FUNCTION = re.compile(r"^define .*?^\}", re.M | re.S)


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
    """
    head = re.search(rf"^define [^\n]*@{re.escape(scalar)}\([^\n]*!dbg (!\d+)", ir, re.M)
    if head is None:
        return list(texts), []
    subprogram = node_text(ir, head[1])
    numbers = itertools.count(1 + max(map(int, re.findall(r"^!(\d+) = ", ir, re.M))))
    nodes: list[str] = []

    def new(text: str) -> str:
        nodes.append(f"!{next(numbers)} = {text}")
        return nodes[-1].split(" ")[0]

    def function(match: re.Match[str]) -> str:
        text = match[0]
        subprograms = list(dict.fromkeys(_ATTACHMENT.findall(text)))
        name = _DEFINITION.match(text)
        assert name is not None
        own = new(re.sub(r'\bname: "[^"]*"', f'name: "{name[1]}"', subprogram, count=1))
        caller = new(f"distinct !DILocation(line: 0, scope: {own})")
        inlined = {each: new(_inlined(node_text(ir, each), caller)) for each in subprograms}
        text = _ATTACHMENT.sub(lambda each: f"!dbg {inlined[each[1]]}", text)
        # LLVM wants a location at each call that it may inline.
        text = _CALL_WITHOUT.sub(rf"\1, !dbg {caller}", text)
        return _DEFINITION.sub(lambda each: f"{each[0]} !dbg {own}", text)

    return [_FUNCTION.sub(function, text) for text in texts], nodes


def _inlined(location: str, caller: str) -> str:
    """A location whose function is inlined at `caller`."""
    fields = ", ".join(_retained(location))
    return f"!DILocation({fields}, inlinedAt: {caller})"


def _retained(location: str) -> Iterator[str]:
    for field in ("line", "column", "scope"):
        match = re.search(rf"\b{field}: !?\w+", location)
        if match:
            yield match[0]
