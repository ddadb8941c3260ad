"""Python's operators on arrays, each a row of the table of operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.array.build import binary, is_number, unary
from metalloid.array.node import Node
from metalloid.array.ops import OPS
from metalloid.array.products import matrix_product


def _fits(value: Any) -> bool:
    """Whether an operator of an array knows what to do with the other operand."""
    return hasattr(value, "_node") or is_number(value) or isinstance(value, np.generic | np.ndarray)


def _forward(name: str) -> Any:
    row = OPS[name]

    def operate(self: Any, other: Any) -> Any:
        if not _fits(other):
            return NotImplemented
        return self._new(binary(row, self, other))

    operate.__doc__ = f"See `metalloid.{name}`."
    return operate


def _reflected(name: str) -> Any:
    row = OPS[name]

    def operate(self: Any, other: Any) -> Any:
        if not _fits(other):
            return NotImplemented
        return self._new(binary(row, other, self))

    operate.__doc__ = f"See `metalloid.{name}`."
    return operate


def _in_place(name: str) -> Any:
    row = OPS[name]

    def operate(self: Any, other: Any) -> Any:
        if not _fits(other):
            return NotImplemented
        self._node = in_place(name, self._node, binary(row, self, other))
        return self

    operate.__doc__ = f"See `metalloid.{name}`; the name keeps the new value."
    return operate


def in_place(name: str, old: Node, new: Node) -> Node:
    """The new value of a name, which keeps its type and shape.

    Raises
    ------
    TypeError, ValueError
        If it cannot.
    """
    if new.dtype != old.dtype:
        raise TypeError(f"[{name}] in place makes {new.dtype} of {old.dtype}.")
    if new.shape != old.shape:
        raise ValueError(f"[{name}] in place makes {new.shape} of shape {old.shape}.")
    return new


def _single(name: str) -> Any:
    row = OPS[name]

    def operate(self: Any) -> Any:
        return self._new(unary(row, self))

    operate.__doc__ = f"See `metalloid.{name}`."
    return operate


class Operators:
    """What Python's operators mean, for a class with ``_node`` and ``_new(node)``."""

    __slots__ = ("_node",)
    _node: Node

    def _new(self, node: Node) -> Any:
        """An array of a node."""
        raise NotImplementedError

    __add__, __radd__, __iadd__ = _forward("add"), _reflected("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = (
        _forward("subtract"), _reflected("subtract"), _in_place("subtract"))  # fmt: skip
    __mul__, __rmul__, __imul__ = (
        _forward("multiply"), _reflected("multiply"), _in_place("multiply"))  # fmt: skip
    __truediv__, __rtruediv__, __itruediv__ = (
        _forward("divide"), _reflected("divide"), _in_place("divide"))  # fmt: skip
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        _forward("floor_divide"), _reflected("floor_divide"),
        _in_place("floor_divide"))  # fmt: skip
    __mod__, __rmod__, __imod__ = (
        _forward("remainder"), _reflected("remainder"), _in_place("remainder"))  # fmt: skip
    __pow__, __rpow__, __ipow__ = _forward("pow"), _reflected("pow"), _in_place("pow")
    __and__, __rand__, __iand__ = (
        _forward("bitwise_and"), _reflected("bitwise_and"), _in_place("bitwise_and"))  # fmt: skip
    __or__, __ror__, __ior__ = (
        _forward("bitwise_or"), _reflected("bitwise_or"), _in_place("bitwise_or"))  # fmt: skip
    __xor__, __rxor__, __ixor__ = (
        _forward("bitwise_xor"), _reflected("bitwise_xor"), _in_place("bitwise_xor"))  # fmt: skip
    __lshift__, __rlshift__, __ilshift__ = (
        _forward("bitwise_left_shift"), _reflected("bitwise_left_shift"),
        _in_place("bitwise_left_shift"))  # fmt: skip
    __rshift__, __rrshift__, __irshift__ = (
        _forward("bitwise_right_shift"), _reflected("bitwise_right_shift"),
        _in_place("bitwise_right_shift"))  # fmt: skip
    __lt__, __le__ = _forward("less"), _forward("less_equal")
    __gt__, __ge__ = _forward("greater"), _forward("greater_equal")
    __eq__, __ne__ = _forward("equal"), _forward("not_equal")

    def __matmul__(self, other: Any) -> Any:
        """See `metalloid.matmul`."""
        return self._new(matrix_product(self, other)) if _fits(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        """See `metalloid.matmul`."""
        return self._new(matrix_product(other, self)) if _fits(other) else NotImplemented

    def __imatmul__(self, other: Any) -> Any:
        """See `metalloid.matmul`; the name keeps the new value."""
        self._node = in_place("matmul", self._node, matrix_product(self, other))
        return self

    __neg__, __pos__, __abs__ = _single("negative"), _single("positive"), _single("abs")
    __invert__ = _single("bitwise_invert")
    __hash__ = None  # type: ignore[assignment]
