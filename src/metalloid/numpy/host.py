"""Names of NumPy that are not computations on arrays, and functions that NumPy computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import data_types
from metalloid.arrays.interop.numpy_functions import call_on_host
from metalloid.arrays.ir.dtypes import as_dtype, promote
from metalloid.arrays.ir.node import cast
from metalloid.numpy.array import numpy_function
from metalloid.numpy.memory_order import in_memory

#: Names that are NumPy's own: types, constants, errors, settings of text, tools.
SAME = (
    "False_", "ScalarType", "True_", "bool", "bool_", "busdaycalendar", "byte", "bytes_", "cdouble",
    "character", "clongdouble", "complex128", "complex64", "complexfloating", "csingle",
    "datetime64", "double", "dtype", "dtypes", "e", "errstate", "euler_gamma", "exceptions",
    "flexible", "float16", "float32", "float64", "floating", "generic", "half", "inexact", "inf",
    "int16", "int32", "int64", "int8", "int_", "intc", "integer", "intp", "long", "longdouble",
    "longlong", "nan", "newaxis", "number", "object_", "pi", "short", "signedinteger", "single",
    "str_", "timedelta64", "ubyte", "uint", "uint16", "uint32", "uint64", "uint8", "uintc", "uintp",
    "ulong", "ulonglong", "unsignedinteger", "ushort", "void", "little_endian", "sctypeDict",
    "typecodes", "index_exp", "s_",
    "base_repr", "binary_repr", "format_float_positional", "format_float_scientific",
    "get_printoptions", "getbufsize", "geterr", "geterrcall", "issubdtype", "ndindex",
    "printoptions", "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config",
    "show_runtime", "typename", "mintypecode", "busday_count", "busday_offset", "is_busday",
    "datetime_as_string", "datetime_data", "get_include", "info", "testing", "typing", "char",
    "strings", "ma", "emath", "ctypeslib", "isnat", "test",
)  # fmt: skip

#: The reason of functions that are about text and files.
TEXT = "text and files"
#: Functions that NumPy computes from the values, with the reason.
ON_HOST = {
    name: reason
    for reason, names in {
        TEXT: (
            "array2string", "array_repr", "array_str", "fromfile", "fromregex", "fromstring",
            "genfromtxt", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed",
        ),
        "a plan in words": ("einsum_path",),
        "matrices, which NumPy discourages": ("asmatrix", "bmat", "matrix"),
        "iteration over single elements": ("broadcast", "nditer", "nested_iters"),
        "objects that call Python": ("frompyfunc", "poly1d"),
    }.items()
    for name in names
}  # fmt: skip

#: Names that do not exist, with the reason.
MISSING = {
    "memmap": "arrays own their memory; use `load`",
    "recarray": "no structured types",
    "record": "no structured types",
    "rec": "no structured types",
    "complex256": "no device has it",
    "float128": "no device has it",
    "core": "private",
    "f2py": "compiles Fortran",
    "flatiter": "see `ndarray.flat`",
}


def on_host(name: str) -> Callable[..., Any]:
    """The function of NumPy's name that NumPy computes from the values of arrays."""
    function = getattr(np, name)
    return function if isinstance(function, type) else host_function(function)


def host_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that NumPy computes from the values of arrays; its results are arrays again."""

    @numpy_function
    def call(*args: Any, **options: Any) -> Any:
        return call_on_host(function, args, options)

    name = function.__name__
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``{function.__module__}.{name}``, which NumPy computes on the host."
    return call


# -- types


def finfo(dtype: Any) -> Any:
    """Limits of a float type."""
    return np.finfo(dtype.dtype if isinstance(dtype, Array) else dtype)


def iinfo(type: Any) -> Any:
    """Limits of an integer type."""
    return np.iinfo(type.dtype if isinstance(type, Array) else type)


@numpy_function
def result_type(*arrays_and_dtypes: Any) -> Any:
    """Type of the result of an operation on operands of these types."""
    return data_types.result_type(*arrays_and_dtypes)


@numpy_function
def promote_types(type1: Any, type2: Any) -> Any:
    """Smallest type to which both types convert."""
    return promote(as_dtype(type1), as_dtype(type2))


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a type converts to another one by a rule."""
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is of a kind."""
    return data_types.isdtype(dtype, kind)


def common_type(*arrays: Any) -> Any:
    """Float type to which all arrays convert."""
    return np.common_type(*(np.empty(0, x.dtype) for x in arrays))


def min_scalar_type(a: Any) -> Any:
    """Smallest type that holds a number; of arrays, their type."""
    return a.dtype if isinstance(a, Array) and a.ndim else np.min_scalar_type(np.asarray(a))


@numpy_function
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert to another type."""
    result = as_array(x, "astype")
    if device is not None:
        result = result.to_device(device)
    return Array(cast(result._node, as_dtype(dtype)))


# -- sizes


def shape(a: Any) -> tuple[int, ...]:
    """Extent of each axis."""
    return a.shape if isinstance(a, Array) else np.shape(a)


def ndim(a: Any) -> int:
    """Number of axes."""
    return a.ndim if isinstance(a, Array) else np.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or extent of an axis."""
    extents = shape(a)
    axes = range(len(extents)) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    return int(np.prod([extents[k] for k in axes], dtype=int))


# -- iteration and joined ranges


class ndenumerate:
    """Pairs of indices and elements.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> list(np.ndenumerate(np.array([5, 6])))
    [((0,), np.int64(5)), ((1,), np.int64(6))]
    """

    def __init__(self, arr: Any) -> None:
        self._items = np.ndenumerate(np.asarray(arr))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)


class vectorize(np.vectorize):
    """A function of numbers as one of arrays: Python calls it for each element.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.vectorize(lambda a, b: max(a, b))([1, 5], 3)
    array([3, 5])
    """

    @numpy_function
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for each element."""
        return call_on_host(super().__call__, args, kwargs)


class _Joined:
    """``r_`` and ``c_``: joined slices, numbers and arrays."""

    def __init__(self, name: str) -> None:
        self._joiner = getattr(np, name)

    @numpy_function
    def __getitem__(self, key: Any) -> Any:
        return call_on_host(self._joiner.__getitem__, (key,), {})


r_, c_ = _Joined("r_"), _Joined("c_")


class _StrideTricks:
    """Views of windows; the results are not writeable views."""

    @staticmethod
    @numpy_function
    def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False,
                   writeable: bool = True, *, check_bounds: Any = None) -> Any:  # fmt: skip
        """Elements of an array at multiples of strides, which count bytes.

        Raises
        ------
        IndexError
            If an element is outside of the array.

        Examples
        --------
        >>> import metalloid.numpy as np
        >>> np.lib.stride_tricks.as_strided(np.arange(4), (3, 2), (8, 8))
        array([[0, 1],
               [1, 2],
               [2, 3]])
        """
        from metalloid.arrays.array import as_array
        from metalloid.arrays.functions.evenly_spaced import arange
        from metalloid.arrays.functions.manipulation import permute_dims
        from metalloid.arrays.functions.searching import take

        array = as_array(x, "as_strided")
        extents = array.shape if shape is None else np.broadcast_shapes(shape)
        axes, own_steps = in_memory(array)
        steps = own_steps if strides is None else tuple(
            operator.index(s) // array.itemsize for s in strides)  # fmt: skip
        if len(steps) != len(extents) or any(
            s % array.itemsize for s, n in zip(strides or (), extents, strict=False) if n > 1
        ):
            raise ValueError(
                f"[as_strided] expected a multiple of {array.itemsize} for each axis of shape "
                f"{extents}, got the strides {strides}."
            )
        ends = [step * (n - 1) for step, n in zip(steps, extents, strict=True)]
        first, last = sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)
        if 0 not in extents and (first < 0 or last >= array.size):
            raise IndexError(
                f"[as_strided] shape {extents} with strides {strides} reaches elements {first} to "
                f"{last} of {array.size}."
            )
        index = arange(1, device=array.device).reshape(())
        for step, extent in zip(steps, extents, strict=True):
            index = index[..., None] + arange(extent, device=array.device) * step
        memory = permute_dims(array, axes).reshape(array.size)
        return take(memory, index.reshape(index.size)).reshape(extents)

    @staticmethod
    @numpy_function
    def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False,
                            writeable: bool = False) -> Any:  # fmt: skip
        """Windows of an array, along new last axes.

        Examples
        --------
        >>> import metalloid.numpy as np
        >>> np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)
        array([[0, 1],
               [1, 2],
               [2, 3]])
        """
        from metalloid.arrays.array import as_array
        from metalloid.arrays.functions.evenly_spaced import arange
        from metalloid.arrays.functions.manipulation import moveaxis
        from metalloid.arrays.functions.searching import take
        from metalloid.arrays.ir.operands import axes_of

        array = as_array(x, "sliding_window_view")
        sizes = (window_shape,) if np.ndim(window_shape) == 0 else tuple(window_shape)
        axes = axes_of("sliding_window_view", axis, array.ndim) if axis is not None else tuple(
            range(array.ndim))  # fmt: skip
        if len(sizes) != len(axes):
            raise ValueError(f"[sliding_window_view] got {len(sizes)} sizes for {len(axes)} axes.")
        for along, extent in zip(axes, sizes, strict=True):
            count = array.shape[along] - extent + 1
            if extent < 0 or count < 1:
                raise ValueError(f"[sliding_window_view] windows of {extent} are too large.")
            index = arange(count, device=array.device)[:, None] + arange(
                extent, device=array.device
            )
            array = moveaxis(take(array, index, along), along + 1, -1)
        return array

    @staticmethod
    def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
        """Broadcast to a shape."""
        from metalloid.numpy.functions.manipulation import broadcast_to

        return broadcast_to(array, shape)


class lib:
    """The parts of ``numpy.lib`` that programs use."""

    stride_tricks = _StrideTricks
