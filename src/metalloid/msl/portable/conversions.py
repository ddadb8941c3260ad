"""Conversions between address spaces, and atomics that Apple GPUs do not have.

Here every space converts to the unnamed one, which `thread` is; Metal's spaces do not mix.
"""

from __future__ import annotations

import re

from metalloid.msl.clang_messages import in_msl_words
from metalloid.msl.portable.syntax_tree import Node
from metalloid.msl.portable.text import Text, is_in_named_space

_CONVERSION = "<AddressSpaceConversion>"
_CALLS = ("CallExpr", "CXXMemberCallExpr")
_ATOMIC = re.compile(r"Function 0x[0-9a-f]+ '(atomic_\w+)'")
_WIDE = re.compile(r"\batomic<((?:unsigned )?long)>")
_WIDE_FUNCTIONS = ("atomic_min_explicit", "atomic_max_explicit")


def check_conversions(text: Text) -> None:
    """Report pointers and references that change their space, and 64-bit atomics."""
    for node in text.nodes:
        if _CONVERSION in node.text:
            _check_conversion(text, node)
        elif node.kind == "DeclRefExpr" and (atomic := _ATOMIC.search(node.text)):
            _check_atomic(text, node, atomic[1])


def _check_conversion(text: Text, node: Node) -> None:
    position = text.token(node.begin)
    target = node.types[1]
    if position is None or is_in_named_space(target) or not node.children:
        return
    source = node.children[0].types[1]
    if target.endswith("*"):
        text.report(position, _message(source, target, "pointer"))
    elif _binds_reference(node) and not target.startswith("const "):
        text.report(position, _message(f"{source} &", f"{target} &", "reference"))


def _binds_reference(node: Node) -> bool:
    """Whether a value is handed over by reference, and not the object of a member function."""
    parent = node.parent
    if parent is None or " lvalue " not in f"{node.text} ":
        return False
    return parent.kind == "VarDecl" or (parent.kind in _CALLS and parent.children[0] is not node)


def _message(source: str, target: str, what: str) -> str:
    source, target = in_msl_words(source), in_msl_words(target)
    space = next((word for word in source.split() if word in ("device", "constant")), "threadgroup")
    return (
        f"cannot convert '{source}' to 'thread {target}': address spaces do not mix; "
        f"declare the {what} as {space}"
    )


def _check_atomic(text: Text, node: Node, function: str) -> None:
    wide = _WIDE.search(node.types[1])
    position = text.token(node.begin)
    if wide is None or position is None:
        return
    if wide[1] == "unsigned long" and function in _WIDE_FUNCTIONS:
        return
    text.report(
        position,
        f"no matching function for call to '{function}': of 64-bit integers Metal has atomic_ulong "
        "only, with atomic_min_explicit and atomic_max_explicit",
    )
