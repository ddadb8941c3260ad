"""Declarations: where MSL expects an address space, and which ones it allows where."""

from __future__ import annotations

import re

from metalloid.msl.address_spaces import SPACES
from metalloid.msl.portable.syntax_tree import Node
from metalloid.msl.portable.text import Text, is_in_named_space

_FUNCTIONS = ("FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXConversionDecl")
_CLASSES = (
    "CXXRecordDecl",
    "ClassTemplateSpecializationDecl",
    "ClassTemplatePartialSpecializationDecl",
)
_INDIRECTION = re.compile(r"[*&](?: ?const)?(?:\[[^\]]*\])*$")
_ATOMIC_TYPE = re.compile(r"(?:metal::)?atomic<[^*&]*$")
#: MSL has no other samplers of the text than constants, which need no address space.
_SAMPLER = re.compile(r"const (?:metal::)?sampler$")
#: Where the type is not what stands in the text.
_DEDUCED = {"auto", "decltype", "typename"}

_WANTS_SPACE = (
    "{} type must have explicit address space qualifier; "
    "write device, constant, threadgroup or thread before it"
)
_TEMPLATE_ARGUMENTS = re.compile(r"<.*>")
_PROGRAM_SCOPE = (
    "program scope variable must reside in constant address space; "
    "write constant before its type, or pass it as a buffer"
)
_STATIC = (
    "variables in function scope cannot be declared static; "
    "write constant at program scope, or pass it as a buffer"
)
_THREADGROUP = (
    "variables in the threadgroup address space cannot be declared in a non-qualified function; "
    "declare it in the kernel and pass a pointer"
)
_ATOMIC = (
    "variables of atomic types must reside in device or threadgroup address space; "
    "write threadgroup before its type, or pass it as a buffer"
)
_MAIN = "non-qualified function cannot be called 'main'"


def check_declarations(text: Text) -> None:
    """Report declarations with a wrong or missing address space."""
    for node in text.nodes:
        if node.is_implicit or any(around.is_implicit for around in node.ancestors()):
            continue
        if node.kind in ("ParmVarDecl", "VarDecl", "FieldDecl"):
            _check_space(text, node, *node.types)
        elif node.kind in _FUNCTIONS:
            result = node.types[0].partition("(")[0].strip()
            _check_space(text, node, result, result)
            _check_name(text, node)
        if node.kind == "VarDecl":
            _check_storage(text, node)


def _check_space(text: Text, node: Node, written: str, resolved: str) -> None:
    if not _INDIRECTION.search(written) or "(" in written or written.endswith("&&"):
        return
    if is_in_named_space(written) or is_in_named_space(resolved) or "type-parameter" in resolved:
        return
    name = text.token(node.name if node.label else node.end)
    if name is None:
        return
    words = text.words(text.declaration(node, name))
    if words & (SPACES | _DEDUCED | text.type_parameters) or not words & {"*", "&"}:
        return
    text.report(name, _WANTS_SPACE.format("pointer" if "*" in written else "reference"))


def _check_name(text: Text, node: Node) -> None:
    if node.kind == "FunctionDecl" and node.label == "main":
        name = text.named(node)
        if name is not None and text.stage(name) is None:
            text.report(name, _MAIN)


def _check_storage(text: Text, node: Node) -> None:
    name = text.named(node)
    if name is None:
        return
    function = next((around for around in node.ancestors() if around.kind in _FUNCTIONS), None)
    statement = text.statement(name)
    words = text.words(statement)
    resolved = node.types[1]
    is_local = "__local" in _TEMPLATE_ARGUMENTS.sub("", resolved)
    if is_local and not _INDIRECTION.search(resolved):
        if function is None:
            text.report(name, _PROGRAM_SCOPE)
        elif (position := text.named(function)) is None or text.stage(position) is None:
            text.report(name, _THREADGROUP)
    elif function is not None and _ATOMIC_TYPE.match(resolved):
        text.report(name, _ATOMIC)
    elif function is not None:
        if "static" in words and not words & {"const", "constexpr", "constant"}:
            text.report(name, _STATIC)
    elif (
        (_is_at_program_scope(node) or "static" in words)
        and not is_in_named_space(resolved)
        and not ("constexpr" in words and _SAMPLER.match(resolved))
        and not words & {"constant", "thread_local"}
        and not text.attribute_index.within(
            statement.start, text.stream.find_from(name, (";", "="))
        )
    ):
        text.report(name, _PROGRAM_SCOPE)


def _is_at_program_scope(node: Node) -> bool:
    return not any(around.kind in (*_CLASSES, "LambdaExpr") for around in node.ancestors())
