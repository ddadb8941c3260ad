"""The array class: a reference to a node, with NumPy's operators and methods."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from metalloid.arrays.execution import explain
from metalloid.arrays.execution.evaluate import settled
from metalloid.arrays.interop.dlpack import imported, owned_copy, unshared
from metalloid.arrays.interop.numpy_protocols import ONE_REFERENCE, Interop
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import DType, as_dtype, kind_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.memory import SHARED
from metalloid.arrays.ir.native import has_native_slots
from metalloid.arrays.ir.node import BUFFER, CONSTANT, Node, cast, permute, reshape
from metalloid.arrays.ir.operands import axes_of, op, to_node, unary
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.ir.views import reshaped
from metalloid.arrays.library import slice_updates
from metalloid.arrays.lowering import assignment, indexing, reductions
from metalloid.arrays.lowering.reductions import Axis
from metalloid.arrays.operators import Operators
from metalloid.display import is_image, png
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device

_bare = object.__new__


@has_native_slots
class Array(Operators, Interop):
    """An n-dimensional array of one element type, evaluated lazily when its values are read.

    Create arrays with `asarray` and similar functions, not by calling the class. Values are
    immutable: operators and functions return new arrays. ``x[i] = v`` and ``x += v`` rebind `x` to
    a new value; other references to the old array do not change.

    Attributes
    ----------
    dtype : numpy.dtype
    shape : tuple of int
    device : Device
    ndim, size, itemsize, nbytes : int
    T, mT : Array
        Transposes of all axes, and of the last two.
    real, imag : Array

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.arange(6, dtype=mtl.float32).reshape(2, 3)
    >>> (x * 2 + 1).sum(axis=1)
    array([ 9., 27.], dtype=float32)
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000

    def __init__(self, node: Node) -> None:
        self._node = settled(node) if node.flags & SHARED else node

    def _new(self, node: Node) -> Array:
        array = _bare(Array)  # faster than calling the class
        array._node = settled(node) if node.flags & SHARED else node
        return array

    # -- properties

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self._node.dtype

    @property
    def shape(self) -> Ints:
        """Extent of each axis."""
        return self._node.shape

    @property
    def device(self) -> Device:
        """The device that evaluates and stores the array."""
        return self._node.device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._node.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._node.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self) -> Array:
        """The transpose: all axes in reverse order."""
        return Array(permute(self._node, tuple(reversed(range(self.ndim)))))

    @property
    def mT(self) -> Array:
        """The transpose of every matrix, over the last two axes."""
        if self.ndim < 2:
            raise ValueError(f"[mT] expected at least two axes, got shape {self.shape}.")
        axes = tuple(range(self.ndim - 2))
        return Array(permute(self._node, (*axes, self.ndim - 1, self.ndim - 2)))

    @property
    def real(self) -> Array:
        """The real part."""
        return self if kind_of(self.dtype) != "c" else Array(unary(OPS["real"], self))

    @property
    def imag(self) -> Array:
        """The imaginary part."""
        return Array(unary(OPS["imag"], self))

    # -- conversions

    def astype(self, dtype: Any, *, copy: bool = True, device: Any = None) -> Array:
        """Convert to another type; see `metalloid.astype`."""
        result = self if device is None else self.to_device(device)
        node = cast(result._node, as_dtype(dtype))
        return Array(unshared(node) if copy else node)

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """Change the shape; one extent may be -1. See `metalloid.reshape`."""
        return Array(reshaped(self._node, shape[0] if len(shape) == 1 else shape, order))

    def transpose(self, *axes: Any) -> Array:
        """Permute the axes; by default, reverse them."""
        if not axes:
            return self.T
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return Array(permute(self._node, axes_of("transpose", order, self.ndim)))

    def squeeze(self, axis: Axis = None) -> Array:
        """Remove axes of extent 1; by default, all of them."""
        axes = tuple(k for k, n in enumerate(self.shape) if n == 1)
        if axis is not None:
            axes = axes_of("squeeze", axis, self.ndim)
            if any(self.shape[k] != 1 for k in axes):
                raise ValueError(
                    f"[squeeze] axis {axis} of shape {self.shape} has an extent other than 1."
                )
        return Array(reductions.without(self._node, axes))

    def flatten(self) -> Array:
        """Collapse the array to one axis."""
        return Array(reshape(self._node, (self.size,)))

    ravel = flatten

    def copy(self) -> Array:
        """Return a copy. Only memory that another library may write is actually copied."""
        return Array(unshared(self._node))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Copy to another device.

        Raises
        ------
        ValueError
            If `stream` is not None: launches of a device run in order.
        """
        if stream is not None:
            raise ValueError(f"[to_device] streams are not supported, got {stream!r}.")
        target = get_device(device)
        if target is self.device:
            return self
        return Array(from_numpy(self.__array__(), target))

    # -- reductions

    def sum(self, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """See `metalloid.sum`."""
        result_dtype = None if dtype is None else as_dtype(dtype)
        return Array(reductions.summed(self._node, "sum", axis, result_dtype, keepdims))

    def prod(self, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """See `metalloid.prod`."""
        result_dtype = None if dtype is None else as_dtype(dtype)
        return Array(reductions.summed(self._node, "prod", axis, result_dtype, keepdims))

    def max(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """See `metalloid.max`."""
        return Array(reductions.extreme(self._node, "max", axis, keepdims))

    def min(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """See `metalloid.min`."""
        return Array(reductions.extreme(self._node, "min", axis, keepdims))

    def mean(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        """See `metalloid.mean`."""
        return Array(reductions.mean(self._as(dtype), axis, keepdims))

    def var(self, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
            keepdims: bool = False) -> Array:  # fmt: skip
        """See `metalloid.var`."""
        return Array(reductions.variance(self._as(dtype), axis, correction, keepdims))

    def std(self, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0,
            keepdims: bool = False) -> Array:  # fmt: skip
        """See `metalloid.std`."""
        variance = self.var(axis, dtype, correction=correction, keepdims=keepdims)
        return Array(unary(op("sqrt"), variance))

    def _as(self, dtype: Any) -> Node:
        return self._node if dtype is None else cast(self._node, as_dtype(dtype))

    def any(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """See `metalloid.any`."""
        return Array(reductions.truth(self._node, "any", axis, keepdims))

    def all(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """See `metalloid.all`."""
        return Array(reductions.truth(self._node, "all", axis, keepdims))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """See `metalloid.argmax`."""
        return Array(reductions.arg_reduce(self._node, "argmax", axis, keepdims))

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """See `metalloid.argmin`."""
        return Array(reductions.arg_reduce(self._node, "argmin", axis, keepdims))

    # -- elements

    def __getitem__(self, key: Any) -> Array:
        result: Array | None = native.selected(self, key)
        return self._new(indexing.selected(self._node, key)) if result is None else result

    def __setitem__(self, key: Any, value: Any) -> None:
        is_exclusive = self._is_exclusive()
        pending = slice_updates.deferred(self._node, key, value) if is_exclusive else None
        if pending is None:
            has_memory = is_exclusive and self._node.kind is BUFFER
            if has_memory and assignment.written(self._node, key, value):
                return
            pending = settled(assignment.updated(self._node, key, value))
        self._node = pending

    def _is_exclusive(self) -> bool:
        """Whether nothing else refers to the memory, or to a write of a slice to be evaluated."""
        if self._is_uniquely_referenced():
            return True
        is_update = slice_updates.is_slice_update(self._node)
        return is_update and sys.getrefcount(self._node) == ONE_REFERENCE

    @property
    def at(self) -> Updater:
        """``x.at[i].add(v)``: return a copy with some elements updated.

        Examples
        --------
        >>> import metalloid as mtl
        >>> mtl.zeros(3).at[mtl.asarray([0, 2, 2])].add(1)
        array([1., 0., 2.], dtype=float32)
        """
        return Updater(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("[len] an array without axes has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("[iter] an array without axes is not iterable.")
        return (self[k] for k in range(self.shape[0]))

    def item(self, *index: int) -> Any:
        """Return one element as a Python number."""
        return self.__array__().item(*index)

    def tolist(self) -> Any:
        """Return nested lists of Python numbers."""
        return self.__array__().tolist()

    def _scalar(self, kind: str) -> Any:
        if self.size != 1:
            raise TypeError(
                f"[{kind}] only an array of one element converts to a number, got {self.shape}."
            )
        if self._node.kind is CONSTANT:
            return self._node.data
        return self.__array__().reshape(()).item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if kind_of(self.dtype) not in "iu":
            raise TypeError(f"[index] only integers are indices, got {self.dtype}.")
        return int(self._scalar("index"))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # -- text

    def __repr__(self) -> str:
        text = np.array2string(self.__array__(), separator=", ", prefix="array(")
        return f"array({text}, dtype={self.dtype})"

    def _repr_png_(self) -> bytes | None:
        return png(self.__array__()) if is_image(self.shape, self.dtype) else None

    def __str__(self) -> str:
        return str(self.__array__())

    def __format__(self, spec: str) -> str:
        return format(self._scalar("format"), spec) if spec else str(self)

    def msl(self) -> str:
        """Return the Metal source of the kernels that evaluate the array."""
        return explain.msl([self._node])


def as_array(value: Any, where: str, device: Device | None = None) -> Array:
    """Convert an operand of a function.

    Operands are arrays, numbers, nested lists, and objects with DLPack, the buffer protocol or
    ``__array__``. The `device` is that of the other operands.

    Raises
    ------
    TypeError
        If it is not numeric.
    """
    if isinstance(value, Array):
        # Functions call the methods of this class, which may be functions of another one.
        return value if type(value) is Array else Array(value._node)
    node = imported(value, device, where)
    return Array(to_node(value, where, device=device) if node is None else owned_copy(node))


def as_arrays(where: str, *values: Any) -> list[Array]:
    """Convert operands of a function; those that are no arrays go to the device of the arrays."""
    device = next((value.device for value in values if isinstance(value, Array)), None)
    return [as_array(value, where, device) for value in values]


class Updater:
    """The value of ``x.at``; indexing it returns an `Update`."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Update:
        return Update(self._array, key)


class Update:
    """Indexed elements of an array, to be replaced in a copy."""

    def __init__(self, array: Array, key: Any) -> None:
        self._array, self._key = array, key

    def _changed(self, function: str, value: Any) -> Array:
        return Array(assignment.updated(self._array._node, self._key, value, function))

    def get(self) -> Array:
        """Return the elements."""
        return self._array[self._key]

    def set(self, value: Any) -> Array:
        """Replace the elements by `value`."""
        return self._changed("set", value)

    def add(self, value: Any) -> Array:
        """Add `value`, repeatedly for repeated indices."""
        return self._changed("add", value)

    def subtract(self, value: Any) -> Array:
        """Subtract `value`, repeatedly for repeated indices."""
        return self._changed("subtract", value)

    def multiply(self, value: Any) -> Array:
        """Multiply by `value`, repeatedly for repeated indices."""
        return self._changed("multiply", value)

    def min(self, value: Any) -> Array:
        """Replace elements by their minimum with `value`."""
        return self._changed("minimum", value)

    def max(self, value: Any) -> Array:
        """Replace elements by their maximum with `value`."""
        return self._changed("maximum", value)
