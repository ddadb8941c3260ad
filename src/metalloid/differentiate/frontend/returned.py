"""Functions that return pointers and references: what they return is memory, not a value."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.tree import Expression
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node

#: The type that a function returns, in what clang says of its declaration.
_RESULT = re.compile(r"'([^'(]*[*&]) ?\(")


def returns_memory(function: Node) -> bool:
    """Whether a function returns a pointer or a reference."""
    return _RESULT.search(function.text) is not None


class Returned:
    """The object or the pointer that a function returns, which is inlined."""

    def __init__(self) -> None:
        self._object: Expression | None = None

    def add(self, reader: Any, value: Expression, node: Node) -> None:
        """Note what a statement returns; pointers into the same memory differ by their offsets."""
        if self._object is None and value.op == "pointer":
            offset = reader.new_variable("returned_offset", Type("long"))
            reader.assign(offset, value.args[1], node)
            self._object = replace(value, args=(value.args[0], offset))
        elif self._object is None:
            self._object = reader.fixed(value)
        elif {self._object.op, value.op} == {"pointer"} and (
            (self._object.args[0], self._object.name) == (value.args[0], value.name)
        ):
            reader.assign(self._object.args[1], value.args[1], node)
        else:
            raise Refused(node.begin, "memory that is chosen at run time has no rule")

    def memory(self, node: Node) -> Expression:
        """The object or the pointer."""
        if self._object is None or self._object.op == "unset":
            raise Refused(node.begin, "this pointer has no rule")
        return self._object
