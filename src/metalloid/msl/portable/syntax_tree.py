"""clang's dump of the syntax tree (``-ast-dump``), read line by line.

Only what the user's text declares is in it: the precompiled standard library is not dumped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from metalloid.msl.diagnostics import Diagnostic

_LOCATION = r"(?:([^\s,>][^,>]*?):(\d+):(\d+)|col:(\d+)|<invalid sloc>)"
_NODE = re.compile(
    r"^(?P<tree>[ |`-]*)(?P<kind>[A-Z]\w*) (?P<address>0x[0-9a-f]+) "
    r"(?:parent 0x[0-9a-f]+ )?(?:prev 0x[0-9a-f]+ )?"
    rf"<{_LOCATION}(?:, {_LOCATION})?>(?: {_LOCATION}(?= |$))?(?P<rest>.*)$"
)
#: A child that a node could have: the condition of ``for (;;)``.
_MISSING = re.compile(r"^(?P<tree>[ |`-]*)<<<NULL>>>$")
#: The initialiser of a member in a constructor.
_INITIALIZER = re.compile(r"^(?P<tree>[ |`-]*)CXXCtorInitializer (?P<rest>.*)$")
#: An argument of a template that its parent is an instance of.
_ARGUMENT = re.compile(r"^(?P<tree>[ |`-]*)TemplateArgument \w+ '([^']*)'(?::'([^']*)')?")
_BEFORE_TYPE = re.compile(r"(?:^| )'")
_TYPE = re.compile(r"'([^']*)'(?::'([^']*)')?")


@dataclass(frozen=True)
class SourceLocation:
    """A position in the lowered text, in the numbering of the user's file."""

    file: str
    line: int
    column: int

    def diagnostic(self) -> Diagnostic:
        """The position in the form that `SourceMap` takes."""
        return Diagnostic("error", self.file, self.line, self.column, "")


@dataclass
class Node:
    """One node of the tree.

    Attributes
    ----------
    kind : str
        ``"ParmVarDecl"``.
    begin, end, name : SourceLocation or None
        Where its text begins, where its last token begins, and where the name it declares stands.
    text : str
        The rest of its line.
    parent : Node or None
    address : str
        Names it where others refer to it.
    children : list of Node
        Of kind ``"Missing"`` where the text leaves one out.
    arguments : list of str
        Of the template that it is an instance of.
    """

    kind: str
    begin: SourceLocation | None
    end: SourceLocation | None
    name: SourceLocation | None
    text: str
    parent: Node | None
    address: str = ""
    children: list[Node] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    @property
    def types(self) -> tuple[str, str]:
        """Its type as written and with typedefs resolved; empty strings without."""
        match = _TYPE.search(self.text)
        return (match[1], match[2] or match[1]) if match else ("", "")

    @property
    def words(self) -> list[str]:
        """The words before its type: properties, and the name last."""
        return _BEFORE_TYPE.split(self.text, maxsplit=1)[0].split()

    @property
    def label(self) -> str:
        """The name it declares; empty without."""
        return self.words[-1] if self.name is not None and self.words else ""

    @property
    def is_implicit(self) -> bool:
        """Whether the compiler added it implicitly."""
        return "implicit" in self.words

    def ancestors(self) -> Iterator[Node]:
        """The nodes around it, from the inside."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def descendants(self) -> Iterator[Node]:
        """The nodes inside it, in the order of the text."""
        for child in self.children:
            yield child
            yield from child.descendants()


def parse_dump(dump: str) -> list[Node]:
    """The nodes of a dump that have a location, in its order.

    A location is printed as its difference from the one printed before it, so every line counts.
    """
    nodes: list[Node] = []
    path: list[tuple[int, Node]] = []
    file, line = "", 0
    for text in dump.splitlines():
        match = _NODE.match(text)
        if match is None:
            forms = (_MISSING, _ARGUMENT, _INITIALIZER)
            other = next(filter(None, (form.match(text) for form in forms)), None) if path else None
            if other is not None:
                depth = len(other["tree"])
                while path and path[-1][0] >= depth:
                    path.pop()
                above = path[-1][1] if path else None
                if above is not None and other.re is _ARGUMENT:
                    above.arguments.append(other[3] or other[2])
                elif above is not None and other.re is _INITIALIZER:
                    node = Node("CXXCtorInitializer", None, None, None, other["rest"], above)
                    above.children.append(node)
                    path.append((depth, node))
                elif above is not None:
                    above.children.append(Node("Missing", None, None, None, "", above))
            continue
        locations: list[SourceLocation | None] = []
        groups = match.groups()
        for first in (3, 7, 11):
            where, in_line, in_column, column = groups[first : first + 4]
            if where is not None:
                file, line = (file if where == "line" else where), int(in_line)
            column = column or in_column
            locations.append(SourceLocation(file, line, int(column)) if column else None)
        depth = len(match["tree"])
        while path and path[-1][0] >= depth:
            path.pop()
        parent = path[-1][1] if path else None
        begin, end, name = locations
        node = Node(
            match["kind"],
            begin,
            end or begin,
            name,
            match["rest"].strip(),
            parent,
            match["address"],
        )
        if parent is not None:
            parent.children.append(node)
        path.append((depth, node))
        nodes.append(node)
    return nodes
