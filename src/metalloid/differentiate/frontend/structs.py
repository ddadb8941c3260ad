"""Names of structs and of types in clang's syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from metalloid.msl.portable.syntax_tree import Node

_RECORDS = ("CXXRecordDecl", "ClassTemplateSpecializationDecl")
_ALIASES = ("TypedefDecl", "TypeAliasDecl")
_DEFINITION = re.compile(r"(?:struct|class) (\w+) definition\b")
_TYPE = re.compile(r"'([^']*)'(?::'([^']*)')?")
_FUNCTIONS = ("FunctionDecl", "CXXMethodDecl")
_ARRAY = re.compile(r"(.*?)((?:\[\d+\])+)")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
#: Aliases of aliases, at most.
_MAX_DEPTH = 8


def record_name(node: Node) -> str:
    """The name of the struct that a node defines, with the arguments of a template, or nothing."""
    definition = _DEFINITION.search(node.text) if node.kind in _RECORDS else None
    if definition is None:
        return ""
    return f"{definition[1]}<{', '.join(node.arguments)}>" if node.arguments else definition[1]


def qualified_name(declaration: Node) -> str:
    """The name that a declaration has outside of its structs and namespaces."""
    scopes = [
        node.label if node.kind in ("NamespaceDecl", "EnumDecl") else record_name(node)
        for node in declaration.ancestors()
    ]
    return "::".join([*filter(None, reversed(scopes)), declaration.label])


def resolve_aliases(nodes: Sequence[Node]) -> None:
    """Replace names of types that the text declares by those types, where clang has not."""
    aliases: dict[str, dict[str, str]] = {}  # by name, then by struct or function
    for node in nodes:
        if node.kind in _ALIASES:
            scope = next(filter(None, map(_scope, node.ancestors())), "")
            aliases.setdefault(node.label, {})[scope] = node.types[1]
    if not aliases:
        return
    for node in nodes:
        if node.kind in _ALIASES:
            continue
        match = _TYPE.search(node.text)
        if match is None:
            continue
        before = type_ = match[2] or match[1]
        for _ in range(_MAX_DEPTH):
            changed = _resolved(type_, node, aliases)
            if changed == type_:
                break
            type_ = changed
        if type_ != before:
            node.text = f"{node.text[: match.start()]}'{type_}'{node.text[match.end() :]}"


def resolve_elements(nodes: Sequence[Node]) -> None:
    """Replace types of elements of arrays by what clang says of the elements that functions use."""
    meanings: dict[int, dict[str, set[str]]] = {}  # by function
    arrays: list[tuple[int, Node, str, str]] = []
    for node in nodes:
        function = next((id(each) for each in node.ancestors() if each.kind in _FUNCTIONS), 0)
        written, resolved = node.types
        array = _ARRAY.fullmatch(resolved)
        if array is not None:
            arrays.append((function, node, array[1], array[2]))
        elif written != resolved:
            meanings.setdefault(function, {}).setdefault(written, set()).add(resolved)
    for function, node, element, extents in arrays:
        known = meanings.get(function, {}).get(element, set())
        if len(known) == 1:
            match = _TYPE.search(node.text)
            assert match is not None
            type_ = f"'{next(iter(known))}{extents}'"
            node.text = f"{node.text[: match.start()]}{type_}{node.text[match.end() :]}"


def _resolved(type_: str, node: Node, aliases: dict[str, dict[str, str]]) -> str:
    """A type in which one alias is replaced."""
    for word in _WORD.finditer(type_):
        meanings = aliases.get(word[0])
        if not meanings:
            continue
        start, scope = word.start(), ""
        if type_.endswith("::", 0, start):
            start = _start_of_name(type_, start - 2)
            scope = type_[start : word.start() - 2]
            head, bracket, arguments = scope.partition("<")
            scopes = [head.rpartition("::")[2] + bracket + arguments, ""]
        else:
            scopes = [*map(_scope, node.ancestors()), ""]
        for each in _with_defaults(scopes, meanings):
            if each in meanings and meanings[each] not in (f"struct {word[0]}", f"union {word[0]}"):
                start = start - 9 if type_.endswith("typename ", 0, start) else start
                return type_[:start] + meanings[each] + type_[word.end() :]
    return type_


def _with_defaults(scopes: Sequence[str], known: Iterable[str]) -> Iterator[str]:
    """Names of structs, and of those with the default arguments of their templates."""
    for scope in scopes:
        yield scope
        if scope.endswith(">"):
            full = [each for each in known if each.startswith(f"{scope[:-1]}, ")]
            yield from full if len(full) == 1 else ()


def _scope(node: Node) -> str:
    """The name of a struct or a function that declares aliases; none of other declarations."""
    return node.address if node.kind in _FUNCTIONS else record_name(node)


def _start_of_name(text: str, end: int) -> int:
    """Where the name that ends somewhere begins, with the arguments of templates."""
    depth = 0
    for start in range(end - 1, -1, -1):
        depth += {">": 1, "<": -1}.get(text[start], 0)
        if depth < 0 or (depth == 0 and not (text[start].isalnum() or text[start] in "_:<>")):
            return start + 1
    return 0
