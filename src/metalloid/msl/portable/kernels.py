"""Kernels: their result, where their parameters are bound, and what memory they take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from metalloid.msl.attributes import Attribute
from metalloid.msl.clang_messages import in_msl_words
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.portable.syntax_tree import Node
from metalloid.msl.portable.text import Text

#: Number of indices of each kind of argument.
INDICES = {"buffer": 31, "threadgroup": 31, "texture": 128, "sampler": 16}
#: Threadgroup memory that every GPU of Apple's has.
MAX_THREADGROUP_BYTES = 32768
_SCALAR_BYTES = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "bfloat": 2, "int": 4,
    "uint": 4, "float": 4, "long": 8, "ulong": 8,
}  # fmt: skip
_SCALARS = re.compile(rf"({'|'.join(_SCALAR_BYTES)})([234]?) ?((?:\[\d+\])*)$")


def check_kernels(text: Text, kernels: Iterable[EntryPoint]) -> None:
    """Report kernels that Metal would not take."""
    for node in text.nodes:
        if node.kind not in ("FunctionDecl", "CXXMethodDecl"):
            continue
        name = text.named(node)
        if name is not None and text.stage(name) == "kernel":
            _check_head(text, node, name)
            # A declaration of an instance need not repeat the attributes.
            if any(child.kind == "CompoundStmt" for child in node.children):
                _check_parameters(text, node, name)
            _check_threadgroup_memory(text, node, name)
    _check_names(text, kernels)


def _check_head(text: Text, node: Node, name: int) -> None:
    if node.kind == "CXXMethodDecl":
        text.report(name, "kernel function cannot be a member function")
    result = in_msl_words(node.types[0].partition(" (")[0])
    if result != "void":
        text.report(
            name,
            f"invalid return type '{result}' for kernel function; "
            "return void and write to a buffer",
        )


def _check_parameters(text: Text, node: Node, name: int) -> None:
    stream = text.stream
    opening = stream.next(name)
    if stream.text(opening) != "(" or opening not in stream.partner:
        return
    spans = stream.split_commas(opening + 1, stream.partner[opening])
    parameters = [child for child in node.children if child.kind == "ParmVarDecl"]
    taken: set[tuple[str, int]] = set()
    for (start, stop), parameter in zip(spans, parameters, strict=False):
        attributes = text.attribute_index.within(start, stop)
        names = {attribute.name for attribute in attributes}
        for attribute in attributes:
            _check_index(text, attribute)
            # Parameters that a function constant chooses may take turns.
            if attribute.name in INDICES and "function_constant" not in names:
                _check_taken(text, attribute, taken)
        _check_form(text, parameter, stream.next(start - 1), names)


def _check_index(text: Text, attribute: Attribute) -> None:
    limit = INDICES.get(attribute.name)
    if limit is not None and attribute.index is not None and not 0 <= attribute.index < limit:
        text.report(
            attribute.position,
            f"'{attribute.name}' attribute parameter is out of bounds: "
            f"must be between 0 and {limit - 1}",
        )


def _check_taken(text: Text, attribute: Attribute, taken: set[tuple[str, int]]) -> None:
    if attribute.index is None:
        return
    key = (attribute.name, attribute.index)
    if key in taken:
        text.report(
            attribute.position,
            f"cannot reserve '{attribute.name}' resource location at index {attribute.index}; "
            "give every parameter an index of its own",
        )
    taken.add(key)


def _check_form(text: Text, parameter: Node, position: int, attributes: set[str]) -> None:
    written, resolved = parameter.types
    if "buffer" in attributes and "__local" in resolved:
        text.report(
            position,
            "invalid address space qualification for buffer pointee type "
            f"'{in_msl_words(resolved.rstrip('*& '))}'; "
            "valid address space qualifications are device and constant",
        )
    if _bytes_of(resolved) is None or resolved.endswith("]"):
        return
    shown = in_msl_words(written)
    advice = f"take a 'constant {shown}&'"
    if "buffer" in attributes:
        text.report(position, f"type '{shown}' is not valid for attribute 'buffer'; {advice}")
    elif not attributes:
        text.report(
            position,
            f"invalid type '{shown}' for input declaration in a kernel function; {advice}",
        )


def _check_threadgroup_memory(text: Text, node: Node, name: int) -> None:
    total = 0
    for inner in node.descendants():
        if inner.kind == "VarDecl" and inner.types[1].startswith("__local "):
            total += _bytes_of(inner.types[1].removeprefix("__local ")) or 0
    if total > MAX_THREADGROUP_BYTES:
        text.report(name, too_much_memory(total))


def too_much_memory(nbytes: int) -> str:
    """The message for variables that take so many bytes."""
    return (
        f"Threadgroup memory size ({nbytes}) exceeds the maximum threadgroup memory allowed "
        f"({MAX_THREADGROUP_BYTES})"
    )


def _bytes_of(type_name: str) -> int | None:
    """Size of a scalar or vector, or an array of them; None for other types."""
    match = _SCALARS.match(in_msl_words(type_name).removeprefix("const ").strip())
    if match is None:
        return None
    lanes = {"": 1, "3": 4}.get(match[2]) or int(match[2])
    return _SCALAR_BYTES[match[1]] * lanes * math.prod(map(int, re.findall(r"\d+", match[3])))


def _check_names(text: Text, kernels: Iterable[EntryPoint]) -> None:
    seen: set[str] = set()
    for kernel in kernels:
        if kernel.name in seen:
            text.report_line(
                kernel.file, kernel.line,
                f"there is a kernel '{kernel.name}' already; give each a host_name of its own",
            )  # fmt: skip
        seen.add(kernel.name)
