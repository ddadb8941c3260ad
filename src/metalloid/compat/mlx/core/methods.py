"""Operators and methods of arrays."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, is_operand
from metalloid.compat.mlx.core.ops import (
    creation,
    elementwise,
    indexing,
    joining,
    memory,
    numerics,
    products,
    selection,
    shapes,
)
from metalloid.compat.mlx.core.ops import reductions as r

#: Operators: name, function, and the word for it in messages.
_OPERATORS = (
    ("add", elementwise.add, "addition"),
    ("sub", elementwise.subtract, "subtraction"),
    ("mul", elementwise.multiply, "multiplication"),
    ("truediv", elementwise.divide, "division"),
    ("div", elementwise.divide, "division"),
    ("floordiv", elementwise.floor_divide, "floor division"),
    ("mod", elementwise.remainder, "modulus"),
    ("pow", elementwise.power, "power"),
    ("and", elementwise.bitwise_and, "bitwise and"),
    ("or", elementwise.bitwise_or, "bitwise or"),
    ("xor", elementwise.bitwise_xor, "bitwise xor"),
    ("lshift", elementwise.left_shift, "left shift"),
    ("rshift", elementwise.right_shift, "right shift"),
)
_COMPARISONS = (
    ("lt", elementwise.less, "less than"),
    ("le", elementwise.less_equal, "less than or equal"),
    ("gt", elementwise.greater, "greater than"),
    ("ge", elementwise.greater_equal, "greater than or equal"),
)
_METHODS = {
    elementwise: ("abs", "square", "sqrt", "rsqrt", "reciprocal", "exp", "log", "log2", "log10",
                  "log1p", "sin", "cos", "conj"),
    r: ("all", "any", "sum", "prod", "min", "max", "mean", "std", "var", "argmin", "argmax",
        "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
    shapes: ("moveaxis", "swapaxes", "flatten", "squeeze", "astype"),
    numerics: ("logsumexp",),
    creation: ("diagonal", "diag"),
    joining: ("split",),
    selection: ("round",),
    memory: ("view",),
}  # fmt: skip


def _refusal(word: str, value: Any) -> ValueError:
    return ValueError(f"Cannot perform {word} on an mlx.core.array and {type(value).__name__}")


def _has_operator(value: Any, name: str) -> bool:
    """Whether a value that is no operand defines the operator itself."""
    return not isinstance(value, list | tuple | str | bytes) and hasattr(type(value), name)


def _operator(function: Callable[..., array], name: str, word: str) -> Callable[..., Any]:
    reflected = f"__r{name}__"

    def apply(self: array, other: Any) -> Any:
        if type(other) is not array and not is_operand(other):
            if _has_operator(other, reflected):
                return NotImplemented
            raise _refusal(word, other)
        return function(self, other)

    return apply


def _reflected(function: Callable[..., array], word: str) -> Callable[..., Any]:
    def apply(self: array, other: Any) -> Any:
        if not is_operand(other):
            raise _refusal(word, other)
        return function(other, self)

    return apply


def _in_place(function: Callable[..., array], name: str, word: str) -> Callable[..., Any]:
    reflected = f"__r{name}__"

    def apply(self: array, other: Any) -> Any:
        if type(other) is not array and not is_operand(other):
            if _has_operator(other, reflected):
                return NotImplemented
            raise _refusal(f"inplace {word}", other)
        if word == "division" and dtypes.is_integer(self.dtype):
            raise ValueError("In-place division is not supported for integer arrays: use //=.")
        self._a = function(self, other)._a
        return self

    return apply


def _equality(function: Callable[..., array], otherwise: bool) -> Callable[..., Any]:
    def apply(self: array, other: Any) -> Any:
        if type(other) is not array and not is_operand(other):
            return otherwise
        return function(self, other)

    return apply


def _matmul(self: array, other: array) -> array:
    if not is_operand(other):
        raise _refusal("matmul", other)
    return products.matmul(self, other)


def _in_place_matmul(self: array, other: array) -> array:
    self._a = _matmul(self, other)._a
    return self


def _invert(self: array) -> array:
    if dtypes.is_inexact(self.dtype):
        raise ValueError("Floating point types not allowed with bitwise inversion.")
    if self.dtype is dtypes.bool_:
        return elementwise.logical_not(self)
    return elementwise.bitwise_invert(self)


def _reshape(self: array, *shape: Any, stream: Any = None) -> array:
    """The same elements in another shape; see `reshape`."""
    if len(shape) == 1 and isinstance(shape[0], list | tuple):
        shape = tuple(shape[0])
    reshape: Any = shapes.reshape
    reshaped: array = reshape(self, shape, stream=stream)
    return reshaped


def _transpose(self: array, *axes: Any, stream: Any = None) -> array:
    """Permute the axes; see `transpose`."""
    if len(axes) == 1 and isinstance(axes[0], list | tuple):
        axes = tuple(axes[0])
    transpose: Any = shapes.transpose
    transposed: array = transpose(self, axes or None, stream=stream)
    return transposed


def _matrix_transpose(self: array) -> array:
    if self.ndim < 2:
        raise ValueError("[matrix_transpose] The array must have at least 2 dimensions.")
    return shapes.matrix_transpose(self)


def define_methods() -> None:
    """Define operators and methods that are functions of this package."""
    define = builtins.setattr
    for name, function, word in _OPERATORS:
        define(array, f"__{name}__", _operator(function, name, word))
        define(array, f"__r{name}__", _reflected(function, word))
        if name != "div":
            define(array, f"__i{name}__", _in_place(function, name, word))
    for name, function, word in _COMPARISONS:
        define(array, f"__{name}__", _operator(function, name, word))
    define(array, "__eq__", _equality(elementwise.equal, False))
    define(array, "__ne__", _equality(elementwise.not_equal, True))
    define(array, "__matmul__", _matmul)
    define(array, "__imatmul__", _in_place_matmul)
    define(array, "__invert__", _invert)
    define(array, "__neg__", lambda self: elementwise.negative(self))
    define(array, "__pos__", lambda self: elementwise.positive(self))
    define(array, "__abs__", lambda self: elementwise.abs(self))
    define(array, "__getitem__", indexing.get_item)
    define(array, "__setitem__", indexing.set_item)
    define(array, "at", property(indexing.ArrayAt, doc="``x.at[i].add(v)``: an updated copy."))
    define(array, "T", property(shapes.transpose, doc="All axes in reverse order."))
    define(array, "mT", property(_matrix_transpose, doc="The transpose of every matrix."))
    define(array, "real", property(elementwise.real, doc="The real part."))
    define(array, "imag", property(elementwise.imag, doc="The imaginary part."))
    define(array, "__iter__", lambda self: shapes.ArrayIterator(self))
    define(array, "reshape", _reshape)
    define(array, "transpose", _transpose)
    for module, names in _METHODS.items():
        for name in names:
            define(array, name, getattr(module, name))
