"""Methods of `ndarray`, which are functions of this package by name."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.evaluate import settled
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import as_dtype, bool_, uint8
from metalloid.arrays.ir.node import BUFFER, apply, cast
from metalloid.arrays.ir.ops import BITS
from metalloid.arrays.lowering.assignment import updated
from metalloid.arrays.lowering.indexing import selected
from metalloid.numpy.array import ndarray, numpy_function
from metalloid.numpy.functions import (
    indexing,
    logic,
    manipulation,
    products,
    reductions,
    scans,
    sorting,
)
from metalloid.numpy.known_calls import structural_function, structural_update
from metalloid.numpy.memory_order import in_order, strides_of

#: Functions whose first argument is the array.
_FUNCTIONS = {
    indexing: ("choose", "nonzero", "put", "take"),
    logic: ("clip", "round"),
    manipulation: ("ravel", "repeat", "squeeze", "swapaxes"),
    products: ("diagonal", "dot", "trace"),
    reductions: ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum",
                 "var"),
    scans: ("cumprod", "cumsum"),
    sorting: ("argpartition", "argsort", "searchsorted"),
}  # fmt: skip
#: Methods of `Array` that are the same, but for the type rules.
_SAME = ("to_device",)


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # for the signature, too
    def method(self: ndarray, *args: Any, **options: Any) -> Any:
        return function(self, *args, **options)

    method.__name__, method.__qualname__ = name, f"ndarray.{name}"
    return method


@structural_function(1)
def _byteswapped(x: Array) -> Any:
    """Exchange the bytes of each element: neighbours, then pairs of them, then fours."""
    if x.dtype.kind == "c":
        return call_on_host(np.ndarray.byteswap, (x,), {})
    width = 8 * x.dtype.itemsize
    bits = Array(apply(BITS, as_dtype(f"uint{width}"), x._node))
    for shift in (8, 16, 32):
        if shift < width:
            mask = sum(((1 << shift) - 1) << first for first in range(0, width, 2 * shift))
            bits = (bits >> shift) & mask | (bits & mask) << shift
    return Array(apply(BITS, x.dtype, bits._node))


@structural_function(2, index=1)
def _selected(x: Any, key: Any) -> Any:
    return Array(selected(x._node, key))


@structural_function(3, index=1)
def _updated(x: Any, key: Any, value: Any) -> Any:
    return Array(updated(x._node, key, value))


_assign = numpy_function(Array.__setitem__)


class _Methods:
    """Methods that are not functions of the same name and arguments."""

    @structural_function(1)
    def astype(self: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True,
               copy: bool = True, *, device: Any = None) -> Array:  # fmt: skip
        """Convert to another type."""
        target = as_dtype(dtype)
        if not np.can_cast(self.dtype, target, casting):
            raise TypeError(f"[astype] {self.dtype} does not convert to {target} by {casting!r}.")
        result = self if device is None else self.to_device(device)
        return in_order(Array(cast(result._node, target)), order, self)

    @structural_function(1)
    def copy(self: Any, order: str = "C") -> Array:
        """Return a copy."""
        return in_order(asarray(self, copy=True), order, self, True)

    @structural_function(1)
    def flatten(self: Any, order: str = "C") -> Array:
        """Return a copy with one axis."""
        return manipulation.ravel(self, order)

    @numpy_function
    def reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
        """Change the shape; one extent may be -1."""
        extents = shape[0] if len(shape) == 1 else shape
        return manipulation.reshape(self, extents, order, copy=copy)

    @numpy_function
    def transpose(self: Any, *axes: Any) -> Any:
        """Permute the axes; by default, reverse them."""
        if not axes or axes[0] is None:
            return manipulation.transpose(self)
        return manipulation.transpose(
            self, axes[0] if len(axes) == 1 and np.ndim(axes[0]) else axes
        )

    @numpy_function
    def compress(self: Any, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Subarrays along an axis where a condition is true."""
        return indexing.compress(condition, self, axis, out)

    def conj(self: Any) -> Any:
        """Complex conjugate."""
        from metalloid.numpy.ufunc import UFUNCS

        return UFUNCS["conjugate"](self) if self.dtype.kind == "c" else self

    conjugate = conj

    @structural_update(1)
    def fill(self: Any, value: Any) -> Any:
        """Set all elements to a number."""
        new = Array(updated(self._node, ..., value))
        return in_order(new, "K", self) if self._node.kind is BUFFER else new

    def __getitem__(self: Any, key: Any) -> Any:
        view: Any = native.selected(self, key)
        return _selected(self, key) if view is None else view

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        if self._is_exclusive():
            _assign(self, key, value)
        else:
            self._node = _updated(self, key, value)._node

    def sort(self: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
             ) -> None:  # fmt: skip
        """Sort in place along an axis."""
        self._node = settled(sorting.sort(self, axis)._node)

    def partition(self: Any, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Partition in place along an axis; see `partition`."""
        self._node = settled(sorting.partition(self, kth, axis)._node)

    def resize(self: Any, *new_shape: Any, refcheck: bool = True) -> None:
        """Change the number of elements in place; new ones are zeros."""
        shape = new_shape[0] if len(new_shape) == 1 and np.ndim(new_shape[0]) else new_shape
        size = int(np.prod(shape, dtype=int))
        flat = self.ravel()[:size]
        if flat.size < size:
            zeros = asarray(np.zeros(size - flat.size, self.dtype), device=self.device)
            flat = manipulation.concatenate([flat, zeros])
        self._node = settled(flat.reshape(shape)._node)

    @numpy_function
    def view(self: Any, dtype: Any = None, type: Any = None) -> Any:
        """Return the same bits as another type; the result is a copy."""
        is_class = isinstance(dtype, builtins.type) and issubclass(dtype, Array)
        target = self.dtype if dtype is None or is_class else as_dtype(dtype)
        if target == self.dtype:
            return Array(self._node)
        if target == bool_ and self.itemsize == 1:
            return Array(apply(BITS, uint8, self._node)) != 0
        if target.itemsize == self.itemsize and "c" not in (target.kind, self.dtype.kind):
            return Array(apply(BITS, target, self._node))
        return call_on_host(np.ndarray.view, (self, target), {})

    def tobytes(self: Any, order: str = "C") -> bytes:
        """Return the bytes of the elements, row by row."""
        return bytes(self.__array__().tobytes(order))

    def tofile(self: Any, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file; see ``numpy.ndarray.tofile``."""
        self.__array__().tofile(fid, sep, format)

    def byteswap(self: Any, inplace: bool = False) -> Any:
        """Return the elements with their bytes in reverse order."""
        swapped = _byteswapped(self)
        if not inplace:
            return swapped
        self[...] = swapped
        return self

    def dump(self: Any, file: Any) -> None:
        """Write a pickle to a file, or to the file of a path."""
        import pickle
        from pathlib import Path

        if hasattr(file, "write"):
            pickle.dump(self, file)
        else:
            Path(file).write_bytes(pickle.dumps(self))

    def dumps(self: Any) -> bytes:
        """Return a pickle."""
        import pickle

        return pickle.dumps(self)


class flatiter:
    """Elements in the order of the flattened array; ``x.flat[i] = v`` sets them.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> x = np.zeros((2, 2))
    >>> x.flat[1:3] = 5
    >>> x
    array([[0., 5.],
           [5., 0.]])
    """

    def __init__(self, array: ndarray) -> None:
        self.base = array
        self._elements: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.base.size

    def _check(self, key: Any) -> None:
        if key is None or isinstance(key, tuple):
            raise IndexError(f"[flat] expected an integer, a slice or an array, got {key!r}.")

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return self.base.flatten()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check(key)
        if np.ndim(value):  # repeated, or cut off
            indexing.put(self.base, np.arange(self.base.size)[key], value)
            return
        flat = self.base.flatten()
        flat[key] = value
        self.base[...] = flat.reshape(self.base.shape)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._elements is None:
            self._elements = iter(self.base.flatten())
        return next(self._elements)

    def copy(self) -> ndarray:
        """Return the flattened array."""
        return self.base.flatten()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.base.flatten().__array__(dtype, copy)


class _Properties:
    """Properties of NumPy's arrays."""

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """Extent of each axis; assigning changes the shape."""
        return self._node.shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self: Any, shape: Any) -> None:
        self._node = self.reshape(shape)._node

    @property
    def flat(self: Any) -> flatiter:
        """Elements in the order of the flattened array."""
        return flatiter(self)

    @flat.setter
    def flat(self: Any, values: Any) -> None:
        indexing.put(self, np.arange(self.size), values)

    @property
    def strides(self: Any) -> tuple[int, ...]:
        """Bytes between adjacent elements along each axis."""
        return strides_of(self)

    @property
    def base(self: Any) -> None:
        """None: no array writes to the memory of another one."""
        return None

    @property
    def flags(self: Any) -> Any:
        """NumPy's flags of the values."""
        return self.__array__().flags

    @property
    def data(self: Any) -> memoryview:
        """The memory of the values, read-only."""
        memory: memoryview = self.__array__().data
        return memory


def _set_part(name: str) -> Callable[[Any, Any], None]:
    def setter(self: Any, value: Any) -> None:
        changed = self.__array__(copy=True)
        setattr(changed, name, np.asarray(value))
        self[...] = changed

    return setter


def _attach() -> None:
    for module, names in _FUNCTIONS.items():
        for name in names:
            setattr(ndarray, name, _method(name, getattr(module, name)))
    for name in _SAME:
        setattr(ndarray, name, numpy_function(getattr(Array, name)))
    for members in (_Methods, _Properties):
        for name, member in vars(members).items():
            if not name.startswith("__") or name in ("__getitem__", "__setitem__"):
                setattr(ndarray, name, member)
    for name in ("T", "mT", "real", "imag"):
        getter = logic.imag if name == "imag" else getattr(Array, name).fget
        setter = _set_part(name) if name in ("real", "imag") else None
        setattr(ndarray, name, property(numpy_function(getter), setter, doc=getter.__doc__))


_attach()
