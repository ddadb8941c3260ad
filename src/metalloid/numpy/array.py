"""The array class of `metalloid.numpy`: arrays whose types follow NumPy's rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.execution.evaluate import settled
from metalloid.arrays.functions.creation import empty
from metalloid.arrays.ir.dtypes import is_same_kind, type_rules
from metalloid.arrays.ir.memory import SHARED
from metalloid.arrays.ir.native import has_slots_of_arrays
from metalloid.arrays.ir.node import Node, broadcast, cast
from metalloid.kernels.strides import broadcast_shape
from metalloid.runtime.devices.registry import get_device
from metalloid.settings import settings

if TYPE_CHECKING:  # the methods that methods.py attaches
    from metalloid.numpy.method_signatures import Methods
else:
    Methods = Array

P = ParamSpec("P")
R = TypeVar("R")

_bare = object.__new__


class _Floats:
    """The default floats, as `settings.numpy_floats` states."""

    are_wide = True

    @classmethod
    def read(cls, setting: str) -> None:
        cls.are_wide = setting == "float64"


settings.observe("numpy_floats", _Floats.read)


def numpy_function(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: compute with NumPy's default types and promotion; results are `ndarray`.

    Functions that such a function calls use the rules of their caller. So does NumPy's own function
    that is called on an array of `metalloid`.
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if type_rules.are_chosen:
            return function(*args, **options)
        type_rules.are_chosen = True
        try:
            type_rules.are_numpys = _Floats.are_wide and get_device().has_float64
            result: R = as_ndarrays(function(*args, **options))
            return result
        finally:
            type_rules.are_chosen = type_rules.are_numpys = False

    return call


def as_ndarrays(value: Any) -> Any:
    """Convert arrays in a result to `ndarray`."""
    if type(value) is Array:
        return wrap(value._node)
    if isinstance(value, tuple | list):
        items = [as_ndarrays(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def wrap(node: Node) -> ndarray:
    """The array of a node."""
    array = _bare(ndarray)
    array._node = settled(node) if node.flags & SHARED else node
    return array


@has_slots_of_arrays
class ndarray(Methods):
    """An array with NumPy's methods, whose types follow NumPy's rules.

    Its values are those of an array of `metalloid`: expressions are lazy and run as Metal kernels.
    Views do not write through: ``y = x[0]; y[1] = 2`` changes `y` only.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : dtype

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.arange(3) / 2
    array([0. , 0.5, 1. ])
    """

    __slots__ = ()

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        super().__init__(shape if isinstance(shape, Node) else _zeros(shape, dtype))

    def _new(self, node: Node) -> ndarray:
        return wrap(node)

    @numpy_function
    def _applied(self, function: Callable[..., Node], *operands: Any) -> Any:
        return wrap(function(*operands))

    def _rebound(self, name: str, new: Node) -> Any:
        self._node = settled(in_type_of(Array(new), self, name)._node)
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        super().__array_namespace__(api_version=api_version)
        import metalloid

        return metalloid.numpy

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return as_ndarrays(super().__array_function__(function, types, args, options))

    # -- text: arrays of one element without axes are printed as NumPy's scalars

    def __repr__(self) -> str:
        array = self.__array__()
        return repr(array if array.ndim else array[()])

    def __hash__(self) -> int:  # type: ignore[override]
        if self.ndim:
            raise TypeError("[hash] only arrays without axes, which are numbers, have a hash.")
        return hash(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.__array__()[()], spec) if self.ndim == 0 else super().__format__(spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        rounded = round(self._scalar("round"), ndigits)
        return rounded if ndigits is None else numpy_function(as_array)(rounded, "round")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


@numpy_function
def _zeros(shape: Any, dtype: Any) -> Any:
    return empty(shape, dtype)._node


def in_type_of(result: Array, target: Array, where: str, casting: Any = "same_kind") -> Array:
    """Convert a result to the type and shape of an array that is to hold it.

    Raises
    ------
    TypeError, ValueError
        If the types or the shapes do not allow it.
    """
    is_same = casting == "same_kind" and is_same_kind(result.dtype, target.dtype)
    if not is_same and not np.can_cast(result.dtype, target.dtype, casting):
        raise TypeError(
            f"[{where}] {result.dtype} does not convert to {target.dtype} with casting {casting!r}."
        )
    if broadcast_shape(where, result.shape, target.shape) != target.shape:
        raise ValueError(f"[{where}] {result.shape} does not broadcast to {target.shape}.")
    return Array(broadcast(cast(result._node, target.dtype), target.shape))


def check_out(where: str, result: Array, out: Any, dtype: Any = None) -> None:
    """Refuse an array for a result of another shape, or one whose type is given as well."""
    if out is not None and dtype is not None:
        raise TypeError(f"[{where}] takes only one of out and dtype, got {dtype} and an array.")
    if out is not None and np.shape(out) != result.shape:
        raise ValueError(
            f"[{where}] out of shape {np.shape(out)} does not fit the result's {result.shape}."
        )


def store(result: Any, out: Any, where: str, casting: Any = "same_kind", *,
          broadcasts: bool = False) -> Any:  # fmt: skip
    """Store a result in the array of the parameter `out`, if there is one.

    The array must have the result's shape, unless the result `broadcasts`, as those of universal
    functions do.
    """
    if isinstance(out, tuple):
        (out,) = out
    if out is None or out is np._NoValue:
        return result
    if not broadcasts:
        check_out(where, result, out)
    if isinstance(out, np.ndarray):
        np.copyto(out, np.asarray(result), casting=casting)
    else:
        out[...] = in_type_of(as_array(result, where), out, where, casting)
    return out
