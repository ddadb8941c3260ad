"""Python's operators on arrays, generated from the table of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from metalloid.arrays.execution.evaluate import settled
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import is_same_kind
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.ir.operands import binary, is_number, native_operation, unary
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.lowering.matmul import matrix_product

T = TypeVar("T")


class Binary(Protocol):
    """Type of a binary operator: its result has the class of the array."""

    def __get__(self, array: T, cls: type[T]) -> Callable[[Any], T]:
        """Bind it."""


class Unary(Protocol):
    """Type of a unary operator: its result has the class of the array."""

    def __get__(self, array: T, cls: type[T]) -> Callable[[], T]:
        """Bind it."""


def _fits(value: Any) -> bool:
    """Whether the operators of arrays support the other operand."""
    if hasattr(value, "_node") or is_number(value):
        return True
    if isinstance(value, np.generic | np.ndarray | list | tuple):
        return True
    is_array = hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    return is_array and not hasattr(value, "__array_ufunc__")  # its own operators take arrays


def _operator(name: str, is_reflected: bool = False) -> Binary:
    row = OPS[name]
    operation = native_operation(row)

    def operate(self: Any, other: Any) -> Any:
        first, second = (other, self) if is_reflected else (self, other)
        result = native.elementwise(operation, first, second)
        if result is not None:
            return result
        if type(other) is not type(self) and not _fits(other):
            return NotImplemented
        return self._applied(binary, row, first, second)

    operate.__doc__ = f"See `metalloid.{name}`."
    return operate


def _inplace(name: str) -> Binary:
    row = OPS[name]
    operation = native_operation(row)

    def operate(self: Any, other: Any) -> Any:
        result, old = native.elementwise(operation, self, other), self._node
        if result is not None and result.dtype is old.dtype and result.shape == old.shape:
            self._node = settled(result._node)
            return self
        if not _fits(other):
            return NotImplemented
        return self._rebound(name, self._applied(binary, row, self, other)._node)

    operate.__doc__ = f"See `metalloid.{name}`; rebinds the name to the result."
    return operate


def inplace(name: str, old: Node, new: Node) -> Node:
    """The result of an in-place operation in the array's type, as NumPy casts it ("same_kind").

    Raises
    ------
    TypeError, ValueError
        If the kind of the type or the shape changes.
    """
    if not is_same_kind(new.dtype, old.dtype):
        raise TypeError(f"[{name}] in-place operation would change {old.dtype} to {new.dtype}.")
    if new.shape != old.shape:
        raise ValueError(f"[{name}] in-place operation would change {old.shape} to {new.shape}.")
    return cast(new, old.dtype)


def _with_variants(name: str) -> tuple[Binary, Binary, Binary]:
    """The operator, its reflected variant, and its in-place variant."""
    return _operator(name), _operator(name, is_reflected=True), _inplace(name)


def _single(name: str) -> Unary:
    row = OPS[name]
    operation = native_operation(row)

    def operate(self: Any) -> Any:
        result = native.elementwise(operation, self)
        return self._applied(unary, row, self) if result is None else result

    operate.__doc__ = f"See `metalloid.{name}`."
    return operate


class Operators:
    """Mixin class with Python's operators, for a class with ``_node`` and ``_new(node)``."""

    __slots__ = ("_node",)
    _node: Node

    if TYPE_CHECKING:

        def _new(self, node: Node) -> Self:
            """Wrap a node."""

    def _applied(self, function: Callable[..., Node], *operands: Any) -> Self:
        """The array of an operation that native functions do not do."""
        return self._new(function(*operands))

    def _rebound(self, name: str, new: Node) -> Self:
        """Take the result of an in-place operation."""
        self._node = settled(inplace(name, self._node, new))
        return self

    __add__, __radd__, __iadd__ = _with_variants("add")
    __sub__, __rsub__, __isub__ = _with_variants("subtract")
    __mul__, __rmul__, __imul__ = _with_variants("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _with_variants("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _with_variants("floor_divide")
    __mod__, __rmod__, __imod__ = _with_variants("remainder")
    __pow__, __rpow__, __ipow__ = _with_variants("pow")
    __and__, __rand__, __iand__ = _with_variants("bitwise_and")
    __or__, __ror__, __ior__ = _with_variants("bitwise_or")
    __xor__, __rxor__, __ixor__ = _with_variants("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _with_variants("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _with_variants("bitwise_right_shift")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__ = _operator("equal")  # type: ignore[assignment]
    __ne__ = _operator("not_equal")  # type: ignore[assignment]

    def __matmul__(self, other: Any) -> Self:
        """See `metalloid.matmul`."""
        if type(other) is type(self) or _fits(other):
            return self._applied(matrix_product, self, other)
        return NotImplemented

    def __rmatmul__(self, other: Any) -> Self:
        """See `metalloid.matmul`."""
        return self._applied(matrix_product, other, self) if _fits(other) else NotImplemented

    def __imatmul__(self, other: Any) -> Self:
        """See `metalloid.matmul`; rebinds the name to the result."""
        return self._rebound("matmul", self._applied(matrix_product, self, other)._node)

    __neg__, __pos__, __abs__ = _single("negative"), _single("positive"), _single("abs")
    __invert__ = _single("bitwise_invert")
    __hash__ = None  # type: ignore[assignment]
