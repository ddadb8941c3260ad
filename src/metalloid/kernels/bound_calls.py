"""Calls like an earlier one, whose kernel and launch are known."""

from __future__ import annotations

import marshal
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalloid.kernels.kernel import Kernel
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.program import Size

_MAX_CALLS = 256
#: A version of marshal's format in which equal objects have equal bytes.
_WITHOUT_REFERENCES = 1


class Result(NamedTuple):
    """A result that each call allocates."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int

    @classmethod
    def like(cls, array: Any) -> Result:
        """A result like that of an earlier call."""
        return cls(array.shape, array.dtype, math.prod(array.shape) * array.dtype.itemsize)


class BoundCall(NamedTuple):
    """A launch on contiguous inputs of certain types and shapes.

    Attributes
    ----------
    kernel : Kernel
    threads : int or tuple of int
    group_size : tuple of int or None
    results : tuple of Result
    text : str
        The MSL text.
    order : tuple of int or None
        By argument of the kernel, its index among inputs, results and companions; None if they are
        in this order.
    companions : tuple
        Shapes and strides that the kernel uses.
    """

    kernel: Kernel
    threads: int | Size
    group_size: Size | None
    results: tuple[Result, ...]
    text: str = ""
    order: tuple[int, ...] | None = None
    companions: tuple[Any, ...] = ()

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run it on memory of these types and shapes."""
        values = (*inputs, *outputs, *self.companions)
        if self.order is not None:
            values = tuple([values[k] for k in self.order])
        self.kernel.run(values, self.threads, self.group_size)

    def new_outputs(self, new: Callable[..., Any]) -> list[Any]:
        """Results, which `new` allocates for a shape and a dtype."""
        return [new(result.shape, result.dtype) for result in self.results]


class BoundCalls:
    """The latest calls of a kernel, by devices, types and shapes."""

    def __init__(self) -> None:
        self._calls: dict[Any, BoundCall] = {}

    def find(self, key: Any) -> BoundCall | None:
        """An earlier call of this key."""
        return self._calls.get(key)

    def remember(self, key: Any, call: BoundCall) -> None:
        """Let later calls find it."""
        if len(self._calls) >= _MAX_CALLS:
            self._calls.clear()
        self._calls[key] = call

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundCalls, ()  # devices cannot be pickled


class ContiguousArguments(NamedTuple):
    """Arguments that are contiguous arrays and numbers.

    Attributes
    ----------
    values : list
    types : tuple
        The type of each number, and the dtype and shape of each array.
    lazy : object or None
        The first metalloid `Array`.
    """

    values: list[Any]
    types: tuple[Any, ...]
    lazy: Any

    @classmethod
    def of(cls, args: Sequence[Any], device: Device) -> ContiguousArguments | None:
        """None if an argument is something else: a scalar of NumPy, a strided array, a Buffer."""
        values: list[Any] = []
        types: list[Any] = []
        lazy: Any = None
        for value in args:
            kind = type(value)
            if kind is np.ndarray:
                flags = value.flags
                if not (flags.c_contiguous and flags.aligned and value.dtype.isnative):
                    return None
                types += value.dtype, value.shape
            elif kind is float or (kind is int and -(2**31) <= value < 2**31):
                types.append(kind)
            else:
                if device.recording is not None or not hasattr(value, "__metalloid_type__"):
                    return None
                known = value.__metalloid_type__()
                if known is None or value.device is not device:
                    return None
                types += known
                if lazy is None:
                    lazy = value
            values.append(value)
        return cls(values, tuple(types), lazy)


def sizes_key(grid: Any, threadgroup: Any, shapes: Any, dtypes: Any, template: Any) -> Any:
    """The key of a launch of `metal_kernel`, without its inputs; None if it is not hashable.

    A float is refused as a size but may be equal to an int, so the key tells their types apart.
    """
    sizes = grid, threadgroup, shapes, template
    try:
        try:
            key: Any = marshal.dumps(sizes, _WITHOUT_REFERENCES), *dtypes
        except ValueError:  # other objects than Python's own
            key = repr(sizes), *dtypes
        hash(key)
    except TypeError:
        return None
    return key


class LaunchSizes:
    """Grid, threadgroup and results of a call: one object for equal ones, which hashes faster.

    Attributes
    ----------
    results : list of (dtype, shape) or None
        None until a call needs them.
    """

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: list[tuple[np.dtype[Any], tuple[int, ...]]] | None = None


class KnownSizes:
    """The sizes of the latest calls of a kernel."""

    def __init__(self) -> None:
        self._sizes: dict[Any, LaunchSizes] = {}

    def find(
        self, grid: Any, threadgroup: Any, shapes: Any, dtypes: Any, template: Any
    ) -> LaunchSizes | None:
        """The object for these sizes; None if they are not hashable."""
        key = sizes_key(grid, threadgroup, shapes, dtypes, template)
        if key is None:
            return None
        known = self._sizes.get(key)
        if known is None:
            if len(self._sizes) >= _MAX_CALLS:
                self._sizes.clear()
            known = self._sizes[key] = LaunchSizes()
        return known
