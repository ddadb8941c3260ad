"""Find the kernels of a text: definitions, explicit instantiations, and their parameters."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate

from metalloid.msl.attributes import Attribute
from metalloid.msl.entry_points import EntryPoint, GroupLimits, Parameter
from metalloid.msl.integers import integer_value
from metalloid.msl.tokens import TokenStream, is_identifier

#: Function qualifiers of Metal; only kernels run here, the others are recognised to say so.
STAGES = ("kernel", "vertex", "fragment", "mesh", "object")
_NOT_A_STAGE_AFTER = {
    ".", "->", "::", "(", ",", "=", "<", "&", "*", "+", "-", "return", "class", "typename",
    "struct", "enum",
}  # fmt: skip
_NOT_A_NAME = {"const", "volatile", "restrict", "__restrict", "unsigned", "signed", "void"}
_DECLARED_IN_PARENTHESES = ("&", "*")


@dataclass
class EntryPoints:
    """The result of `find_entry_points`."""

    kernels: list[EntryPoint] = field(default_factory=list)
    other_stages: dict[str, str] = field(default_factory=dict)


@dataclass
class _Definition:
    qualified_name: str
    parameters: tuple[Parameter, ...]
    limits: GroupLimits


class AttributeIndex:
    """Attributes by position, for "which stand inside this span?"."""

    def __init__(self, attributes: list[Attribute]) -> None:
        self._attributes = sorted(attributes, key=lambda attribute: attribute.position)
        self._positions = [attribute.position for attribute in self._attributes]

    def within(self, start: int, stop: int) -> list[Attribute]:
        """Attributes that begin in ``[start, stop)``."""
        low = bisect_left(self._positions, start)
        return self._attributes[low : bisect_left(self._positions, stop)]


def find_entry_points(stream: TokenStream, attributes: list[Attribute]) -> EntryPoints:
    """All entry points of `stream`, in the order of the text.

    Stage words and explicit instantiations are taken out of the text: a kernel becomes an ordinary
    function, and only the instances that are asked for are made later.
    """
    index = AttributeIndex(attributes)
    entry_points = EntryPoints()
    templates: dict[str, list[_Definition]] = {}
    scopes = _namespaces(stream)
    lines = _LineTable(stream)
    for position, stage in _stage_words(stream, attributes):
        start = declaration_start(stream, position)
        if stream.text(start) == "template" and stream.after(start) != "<":
            continue  # an explicit instantiation: handled below, once all templates are known
        opening = _parameter_list(stream, position)
        if opening is None:
            continue
        if stream.text(position) == stage:
            stream.replace(position, "")
        body = stream.find_from(stream.next(stream.partner[opening]), ("{", ";"))
        if stream.text(body) != "{":
            continue  # a declaration: its parameters need not carry the attributes
        name = stream.text(stream.previous(opening))
        qualified = scopes.prefix(position) + name
        if stage != "kernel":
            entry_points.other_stages[name] = stage
            continue
        head = index.within(start, opening)
        definition = _Definition(
            qualified,
            _parameters(stream, opening, index),
            _limits(head, GroupLimits()),
        )
        if stream.text(start) == "template":
            templates.setdefault(name, []).append(definition)
            continue
        host_name = next((a.string for a in head if a.name == "host_name"), name)
        entry_points.kernels.append(
            EntryPoint(
                host_name, qualified, definition.parameters, *lines.location(opening),
                definition.limits,
            )
        )  # fmt: skip
    for span, entry in _instantiations(stream, index, templates, scopes, lines):
        stream.remove(*span)
        if entry is not None:
            entry_points.kernels.append(entry)
    return entry_points


def _stage_words(stream: TokenStream, attributes: list[Attribute]) -> list[tuple[int, str]]:
    """Positions of stage words, written as a keyword or as an attribute."""
    words = [(a.position, a.name) for a in attributes if a.name in STAGES]
    inside = {p for a in attributes for p in range(a.position, a.end)}
    for position in stream.where(*STAGES):
        if position in inside:
            continue
        token = stream.text(position)
        before, after = stream.before(position), stream.after(position)
        if before in _NOT_A_STAGE_AFTER or not (is_identifier(after) or after in ("[", "::")):
            continue
        if token in ("object", "mesh") and before not in (";", "}", ""):
            continue
        words.append((position, token))
    return sorted(words)


def declaration_start(stream: TokenStream, position: int) -> int:
    """First token of the declaration that `position` stands in."""
    start = position
    while (before := stream.previous(start)) >= 0:
        token = stream.text(before)
        if token in (";", "{", "}"):
            break
        if token in (")", "]") and before in stream.partner:
            before = stream.partner[before]
        start = before
    return start


def _parameter_list(stream: TokenStream, position: int) -> int | None:
    """The parenthesis that opens the parameters of the function declared from `position` on."""
    while position < len(stream):
        token = stream.text(position)
        if token in (";", "{", "="):
            return None
        if token == "[":
            position = stream.partner.get(position, position)
        elif token == "(":
            if stream.before(position) not in ("decltype", "__attribute__", "alignas"):
                return position if position in stream.partner else None
            position = stream.partner.get(position, position)
        position = stream.next(position)
    return None


def _parameters(stream: TokenStream, opening: int, index: AttributeIndex) -> tuple[Parameter, ...]:
    closing = stream.partner[opening]
    spans = stream.split_commas(opening + 1, closing)
    if len(spans) == 1 and stream.joined(*spans[0]) == "void":
        return ()
    return tuple(_parameter(stream, start, stop, index) for start, stop in spans)


def _parameter(stream: TokenStream, start: int, stop: int, index: AttributeIndex) -> Parameter:
    attributes = index.within(start, stop)
    hidden = {p for a in attributes for p in range(a.position, a.end)}
    visible = [p for p in stream.significant(start, stop) if p not in hidden]
    name = ""
    for number, position in enumerate(visible):
        token = stream.text(position)
        if token in ("[", "=") or (token == ")" and name):
            break
        if token == "(" and stream.after(position) not in _DECLARED_IN_PARENTHESES:
            break
        # A lone identifier is the type of a parameter without a name.
        if is_identifier(token) and token not in _NOT_A_NAME and number > 0:
            previous = stream.text(visible[number - 1])
            name = "" if previous in ("::", "<", ",") else token
    text = stream.source(start, stop)
    if hidden:
        shown = (
            token
            for position, token in enumerate(stream.tokens[start:stop], start)
            if position not in hidden and not token.lstrip().startswith("#")
        )
        text = " ".join("".join(shown).split())
    return Parameter(name, text, tuple((a.name, a.argument) for a in attributes))


def _limits(attributes: list[Attribute], limits: GroupLimits) -> GroupLimits:
    """The limits among `attributes`, and from `limits` what they leave open."""
    for attribute in attributes:
        if attribute.name == "max_total_threads_per_threadgroup":
            limits = limits._replace(max_total=attribute.index or limits.max_total)
        elif attribute.name == "required_threads_per_threadgroup":
            x, y, z, *_ = (*map(integer_value, attribute.argument.split(",")), 1, 1, 1)
            if x is not None and y is not None and z is not None:
                limits = limits._replace(size=(x, y, z))
    return limits


def _instantiations(
    stream: TokenStream,
    index: AttributeIndex,
    templates: dict[str, list[_Definition]],
    scopes: _Namespaces,
    lines: _LineTable,
) -> list[tuple[tuple[int, int], EntryPoint | None]]:
    """``template [[host_name("x")]] [[kernel]] decltype(f<T>) f<T>;`` and its relatives."""
    result: list[tuple[tuple[int, int], EntryPoint | None]] = []
    for position in stream.where("template"):
        if stream.after(position) in ("<", ""):
            continue
        if stream.before(position) in (".", "->", "::"):
            continue
        end = stream.find_from(position, (";",))
        head = index.within(position, end)
        host_name = next((a.string for a in head if a.name == "host_name"), None)
        is_kernel = any(a.name == "kernel" for a in head) or any(
            stream.text(p) == "kernel" for p in stream.significant(position, end)
        )
        if host_name is None and not is_kernel:
            continue
        name, arguments = _instance_name(stream, position, end)
        entry = None
        definition = _matching(templates.get(name.rsplit("::", 1)[-1], []), name)
        span = (position, min(end + 1, len(stream)))
        if definition is not None:
            scope = scopes.prefix(position)
            full = definition.qualified_name
            if not f"::{full}".endswith(f"::{name}"):  # through an alias of a namespace
                full = scope + name
            full += arguments
            opening = _parameter_list(stream, position)
            if not arguments and opening is not None:
                instance = f"metalloid_instance_{len(result)}"
                _name_deduced(stream, (position, opening, end), full, instance)
                full, span = scope + instance, (end, end)  # it stays in the text
            entry = EntryPoint(
                host_name or name, full, definition.parameters,
                *lines.location(position), _limits(head, definition.limits),
            )  # fmt: skip
        result.append((span, entry))
    return result


def _name_deduced(
    stream: TokenStream, spans: tuple[int, int, int], function: str, name: str
) -> None:
    """Name an instance whose template arguments follow from the types of its parameters.

    ``template void f(device float* x);`` becomes a reference to the one ``f`` of that type.
    `spans` are the first token, the parenthesis of the parameters, and the semicolon.
    """
    start, opening, end = spans
    stream.replace(start, f"constexpr auto& {name} = static_cast<")
    for position in stream.significant(start + 1, opening):
        if stream.text(position) == "kernel":
            stream.replace(position, "")
    position = stream.previous(opening)
    stream.replace(position, "(&)")
    first = _start_of_name(stream, position)
    stream.blank(stream.previous(first) if stream.before(first) == "::" else first, position)
    stream.replace(end, f">(::{function});")


def _matching(definitions: list[_Definition], name: str) -> _Definition | None:
    """The definition an instantiation means: the one whose qualified name ends like it."""
    for definition in definitions:
        if f"::{definition.qualified_name}".endswith(f"::{name}"):
            return definition
    return definitions[0] if definitions else None


def _instance_name(stream: TokenStream, start: int, end: int) -> tuple[str, str]:
    """Name and template arguments of the declared instance: what stands before ``;`` or ``(``.

    A ``::`` that says "from the outermost namespace" is left out.
    """
    last = stream.previous(end)
    # Attributes may follow the name.
    while stream.text(last) == "]" and last in stream.partner:
        last = stream.previous(stream.partner[last])
    if stream.text(last) == ")" and last in stream.partner:
        last = stream.previous(stream.partner[last])
    opening = stream.open_angle(last) if stream.text(last) == ">" else -1
    has_arguments = opening > start
    name_token = stream.previous(opening) if has_arguments else last
    arguments = stream.source(opening, last + 1) if has_arguments else ""
    return stream.joined(_start_of_name(stream, name_token), name_token + 1), arguments


def _start_of_name(stream: TokenStream, position: int) -> int:
    """First token of the qualified name that ends at `position`, a leading ``::`` left out."""
    while stream.before(position) == "::":
        qualifier = stream.previous(stream.previous(position))
        if not is_identifier(stream.text(qualifier)) or stream.text(qualifier) in _NOT_A_NAME:
            break
        position = qualifier
    return position


class _Namespaces:
    """Namespace prefix at any position."""

    def __init__(self, spans: list[tuple[int, int, str]]) -> None:
        self._spans = spans

    def prefix(self, position: int) -> str:
        names = [name for start, stop, name in self._spans if start < position < stop]
        return "".join(f"{name}::" for name in names if name)


def _namespaces(stream: TokenStream) -> _Namespaces:
    spans = []
    for position in stream.where("namespace"):
        if stream.before(position) == "using":
            continue
        opening = stream.find_from(stream.next(position), ("{", ";", "="))
        if stream.text(opening) == "{" and opening in stream.partner:
            name = stream.joined(position + 1, opening)
            spans.append((opening, stream.partner[opening], name))
    return _Namespaces(spans)


class _LineTable:
    """File and line of a token, from the line markers of the preprocessor."""

    def __init__(self, stream: TokenStream) -> None:
        self._starts: list[int] = []
        self._line_markers: list[tuple[str, int]] = []
        line_breaks = (token.count("\n") for token in stream.tokens)
        self._newlines = list(accumulate(line_breaks, initial=0))  # before each token
        for position in stream.directives:
            marker = parse_line_marker(stream.text(position))
            if marker is not None:
                file, line = marker
                self._starts.append(position)
                # The marker's own line break comes next and begins line `line`.
                self._line_markers.append((file, line - self._newlines[position] - 1))

    def location(self, position: int) -> tuple[str, int]:
        """``(file, line)`` of the token at `position`."""
        marker = bisect_left(self._starts, position) - 1
        if marker < 0:
            return "", self._newlines[position] + 1
        file, offset = self._line_markers[marker]
        return file, self._newlines[position] + offset


def parse_line_marker(token: str) -> tuple[str, int] | None:
    """``(file, line)`` of a directive like ``# 12 "file" 2``."""
    text = token.lstrip(" \t")
    if not text.startswith("#"):
        return None
    words = text[1:].split(maxsplit=1)
    if len(words) < 2 or not words[0].isdigit() or not words[1].startswith('"'):
        return None
    file = words[1][1 : words[1].rindex('"')]
    return file.replace('\\"', '"').replace("\\\\", "\\"), int(words[0])
