"""Operands: conversion of user values to nodes, promotion, broadcasting."""

from __future__ import annotations

import ctypes
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import (
    ALL,
    DType,
    as_dtype,
    float64,
    int64,
    kind_of,
    promote,
    type_of_number,
    type_rules,
    uint64,
)
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import (
    CONSTANT,
    ELEMENTWISE,
    Node,
    apply,
    broadcast,
    cast,
    constant,
    is_same_shape,
    operation,
    topological_ids,
)
from metalloid.arrays.ir.ops import OPS, WHERE, Op
from metalloid.kernels.strides import broadcast_shape
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.interop.dlpack import from_dlpack

_LARGEST_FLOAT = 3.4028235677973366e38  # the largest double that rounds to a finite float32


class SymbolicNumber(ABC):
    """A number whose value may differ when an expression is evaluated; weakly typed.

    Attributes
    ----------
    type : type
        Of Python's number that it stands for.
    """

    type: type

    @abstractmethod
    def as_node(self, dtype: DType, device: Device) -> Node:
        """A constant of a type."""


def as_number(value: Any, dtype: DType, device: Device) -> Node:
    """A Python scalar as a constant of a type.

    Raises
    ------
    OverflowError
        If an integer type cannot hold it.
    """
    if isinstance(value, SymbolicNumber):
        return value.as_node(dtype, device)
    kind = kind_of(dtype)
    if kind in "iu":
        value = int(value)
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"[{dtype}] {value} is outside [{limits.min}, {limits.max}].")
    elif kind == "f":
        value = float(value)
        if abs(value) > _LARGEST_FLOAT and dtype != float64:
            value = math.copysign(math.inf, value)
    elif kind == "c":
        value = complex(value)
    else:
        value = bool(value)
    return constant(value, dtype, device)


_SCALARS = (bool, int, float, complex)
_NUMBERS = (*_SCALARS, SymbolicNumber)


def is_number(value: Any) -> bool:
    """Whether a value is a Python scalar, which is weakly typed."""
    return type(value) in _SCALARS or (
        isinstance(value, _NUMBERS) and not isinstance(value, np.generic)
    )


def is_scalar(value: Any) -> bool:
    """Whether a value is a scalar of Python or NumPy."""
    return is_number(value) or isinstance(value, np.generic)


def is_weak(value: Any) -> bool:
    """Whether a value adopts the type of arrays: Python's scalars, and NumPy's inexact ones.

    NumPy's are weak, as otherwise ``x * numpy.sqrt(2)`` would have double precision; by NumPy's
    own rules they are not.
    """
    return is_number(value) or (isinstance(value, np.inexact) and not type_rules.are_numpys)


def as_python(value: Any) -> Any:
    """A weak scalar as one of Python's."""
    if isinstance(value, np.complexfloating):
        return complex(value)
    return float(value) if isinstance(value, np.inexact) else value


def python_type(value: Any) -> type:
    """Python's type of a number."""
    if isinstance(value, SymbolicNumber):
        return value.type
    return next(t for t in _SCALARS if isinstance(value, t))


def to_node(value: Any, where: str, dtype: DType | None = None,
            device: Device | None = None) -> Node:  # fmt: skip
    """Convert a value to a node.

    Raises
    ------
    TypeError
        If it is not numeric.
    """
    node = getattr(value, "_node", None)
    if isinstance(node, Node):
        return node
    if is_number(value):
        return as_number(value, dtype or as_dtype(python_type(value)), device or get_device())
    return from_numpy(to_numpy(value, where), device or get_device())


def to_numpy(value: Any, where: str, is_typed: bool = False) -> np.ndarray:
    """Convert a value to a NumPy array.

    Lists of Python's floats have the `default_float`, if they are not to have another type anyway
    (`is_typed`).
    """
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    elif hasattr(value, "__dlpack__") and not hasattr(value, "_node"):
        array = from_dlpack(value)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = np.asarray(value)
    elif isinstance(value, bytes | bytearray | memoryview) or hasattr(value, "__buffer__"):
        array = np.asarray(memoryview(value))
    else:
        array = _of_lists(value, where, is_typed)
    if array.dtype.kind not in "biufcV" or array.dtype.hasobject:
        raise TypeError(
            f"[{where}] expected numeric data, got {type(value).__name__}: {value!r:.60}."
        )
    return array


def _of_lists(value: Any, where: str, is_typed: bool) -> np.ndarray:
    if isinstance(value, Sequence) and not isinstance(value, str):
        dtype = None if is_typed else _type_of_list(value)
        value = [np.asarray(item) if hasattr(item, "_node") else item for item in value]
        if dtype is not None:
            try:
                return np.asarray(value).astype(dtype)
            except ValueError as error:
                raise ValueError(f"[{where}] {error}") from None
    is_own = _holds_only(value, is_number)
    try:
        array = np.asarray(value)
        integers = int | np.integer if is_typed else int
        is_wide = (
            array.dtype == np.float64
            and array.size
            and _holds_only(value, lambda item: isinstance(item, integers))
        )
        if is_wide and not (is_typed and array.min() < 0):
            array = np.asarray(value, np.uint64)  # some need the 64th bit: NumPy takes floats
    except ValueError as error:
        raise ValueError(f"[{where}] {error}") from None
    except OverflowError:
        raise OverflowError(f"[{where}] {value!r:.60} does not fit any integer type.") from None
    if array.dtype == np.object_ and is_own:
        raise OverflowError(f"[{where}] {value!r:.60} does not fit any integer type.")
    if is_own and not is_typed and not type_rules.are_numpys:
        array = array.astype(
            {"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype)
        )
    return array


def _type_of_list(value: Any) -> DType | None:
    """The promoted type of nested lists that hold arrays, next to which numbers are weak."""
    leaves = list(_leaves(value))
    if not any(hasattr(leaf, "_node") for leaf in leaves):
        return None
    dtypes = [np.asarray(leaf).dtype if not hasattr(leaf, "dtype") else leaf.dtype
              for leaf in leaves if not is_weak(leaf)]  # fmt: skip
    dtype = functools.reduce(promote, map(as_dtype, dtypes))
    for leaf in filter(is_weak, leaves):
        dtype = promote(dtype, type_of_number(python_type(as_python(leaf)), dtype))
    return dtype


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _holds_only(value: Any, is_accepted: Callable[[Any], bool]) -> bool:
    """Whether all elements of nested lists satisfy a predicate."""
    if isinstance(value, list | tuple | range):
        return all(_holds_only(item, is_accepted) for item in value)
    return is_accepted(value)


# -- operands


@functools.cache
def _types(op: Op, are_numpys: bool, *dtypes: DType) -> tuple[DType, DType]:
    """The type in which an operation computes, and the type of its result."""
    computed = op.dtype(op.common_dtype(dtypes))
    return computed, op.result(computed)


def native_operation(op: Op) -> tuple[Op, dict[DType, DType]]:
    """An operation, and the types of its results by type of operands that need no conversion."""
    if op is _POWER:  # see `_lower_small_power`
        return op, {}
    return op, {dtype: op.result(dtype) for dtype in ALL if kind_of(dtype) in op.dtype_kinds}


@native.when_loaded
def _load_elementwise(functions: Any) -> None:
    state = (ELEMENTWISE, CONSTANT, topological_ids, _shared_number, _shared_number.__wrapped__,
             float, int)  # fmt: skip
    native.elementwise = functions.mtl_elementwise(ctypes.py_object(state))


def unary(op: Op, value: Any) -> Node:
    """Apply an operation to one operand."""
    node = to_node(value, op.name)
    computed, result = _types(op, type_rules.are_numpys, node.dtype)
    if node.dtype != computed:
        node = cast(node, computed)
    return apply(op, result, node)


def binary(op: Op, a: Any, b: Any) -> Node:
    """Apply an operation to two operands, one of which may be a Python scalar.

    Raises
    ------
    TypeError
        If it does not support their types.
    ValueError
        If their shapes do not broadcast, or they are on different devices.
    """
    if op is _POWER:
        _check_exponent(a, b)
    if op is _POWER and (product := _lower_small_power(a, b)):
        return product
    first, second = getattr(a, "_node", None), getattr(b, "_node", None)
    if second is None and first is not None and type(b) in _SCALARS:
        second = _weak_scalar(first, b)
    elif first is None or second is None or first.device is not second.device:
        first, second = binary_operands(op.name, a, b)
    computed, result = _types(op, type_rules.are_numpys, first.dtype, second.dtype)
    if first.dtype is not computed:
        first = converted(first, computed)
    if second.dtype is not computed:
        second = converted(second, computed)
    is_same = is_same_shape(first.shape, second.shape)
    if not is_same and first.kind is not CONSTANT and second.kind is not CONSTANT:
        first, second = broadcast_operands(op.name, first, second)
    return operation(op, (first, second), result, first.shape or second.shape, first.device)


_POWER, _SQUARE, _MULTIPLY = OPS["pow"], OPS["square"], OPS["multiply"]


def _check_exponent(base: Any, exponent: Any) -> None:
    """Raise an error for a negative power of integers, which integers cannot hold."""
    if isinstance(exponent, int | np.integer) and exponent < 0:
        dtype = to_node(base, "pow").dtype
        if kind_of(dtype) in "iu":
            raise ValueError(
                f"[pow] {dtype} to the power {exponent} is no integer. Convert the base to floats."
            )


def _lower_small_power(base: Any, exponent: Any) -> Node | None:
    """Lower squares and cubes to products, which are faster and as accurate."""
    if not is_number(exponent) or exponent not in (2, 3):
        return None
    node = to_node(base, "pow")
    kind = kind_of(node.dtype)
    if (not isinstance(exponent, int) and kind != "f") or kind not in "iuf":
        return None
    square = apply(_SQUARE, node.dtype, node)
    if exponent == 2:
        return square
    if node.dtype.itemsize == 2 and kind == "f":
        return None  # 16-bit results must be rounded only once
    return apply(_MULTIPLY, node.dtype, square, node)


def converted(node: Node, dtype: DType) -> Node:
    """Convert to another type; constants are folded, as their own type rounds them."""
    if node.kind is CONSTANT and abs(node.data) < _LARGEST_FLOAT:
        return as_number(node.dtype.type(node.data).item(), dtype, node.device)
    return cast(node, dtype)


def binary_operands(where: str, a: Any, b: Any) -> tuple[Node, Node]:
    """Two operands as nodes; a Python scalar adopts the other's type."""
    first, second = getattr(a, "_node", None), getattr(b, "_node", None)
    if first is None:
        if second is not None and is_weak(a):
            return _weak_scalar(second, a), second
        first = to_node(a, where, device=None if second is None else second.device)
    if second is None:
        if is_weak(b):
            return first, _weak_scalar(first, b)
        second = to_node(b, where, device=first.device)
    if first.device is not second.device:
        raise ValueError(
            f"[{where}] one operand is on {first.device.name}, the other on "
            f"{second.device.name}. Move one with to_device."
        )
    return first, second


def _weak_scalar(node: Node, value: Any) -> Node:
    """A Python scalar in the type that it adopts next to `node`."""
    if isinstance(value, SymbolicNumber):
        return value.as_node(type_of_number(value.type, node.dtype), node.device)
    value = as_python(value)
    is_cacheable = value and value == value  # -0 == 0, and NaN != NaN
    make = _shared_number if is_cacheable else _shared_number.__wrapped__
    return make(value, node.dtype, node.device, type_rules.are_numpys)


@functools.lru_cache(maxsize=1024, typed=True)
def _shared_number(value: Any, partner: DType, device: Device, are_numpys: bool = False) -> Node:
    return as_number(value, type_of_number(python_type(value), partner), device)


def broadcast_operands(where: str, *nodes: Node) -> tuple[Node, ...]:
    """Broadcast nodes to one shape; constants stay of shape ()."""
    shape = broadcast_shape(where, *(node.shape for node in nodes))
    return tuple(n if n.kind is CONSTANT else broadcast(n, shape) for n in nodes)


def where_node(condition: Any, a: Any, b: Any) -> Node:
    """Select between two operands by a condition."""
    first, second = binary_operands("where", a, b)
    dtype = promote(first.dtype, second.dtype)
    first, second = converted(first, dtype), converted(second, dtype)
    mask = to_node(condition, "where", device=first.device)
    if kind_of(mask.dtype) != "b":
        raise TypeError(f"[where] the condition must be bool, got {mask.dtype}.")
    mask, first, second = broadcast_operands("where", mask, first, second)
    return apply(WHERE, dtype, mask, first, second)


def op(name: str) -> Op:
    """A row of the operation table, by name."""
    return OPS[name]


def wide_integer(dtype: DType) -> DType:
    """The type in which integers are summed."""
    return uint64 if dtype.kind == "u" else int64


def axes_of(where: str, axis: int | Sequence[int] | None, rank: int) -> Ints:
    """Normalise axes to distinct non-negative ones.

    Raises
    ------
    ValueError
        If there is no such axis, or one is named twice. It is NumPy's AxisError.
    """
    if axis is None:
        return tuple(range(rank))
    axes = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    normalised = []
    for k in axes:
        if not -rank <= k < rank:
            raise np.exceptions.AxisError(
                f"[{where}] axis {k} is out of range for an array with {rank} axes."
            )
        normalised.append(int(k) % rank)
    if len(set(normalised)) != len(normalised):
        raise ValueError(f"[{where}] axis {axis!r} names an axis twice.")
    return tuple(normalised)
