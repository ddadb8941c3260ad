"""Elementwise functions as objects with the interface of NumPy's universal functions."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import full, zeros
from metalloid.arrays.functions.select import where as select
from metalloid.arrays.interop.numpy_functions import OPERATIONS, call_on_host
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import as_dtype, bool_, kind_of, promote, type_rules, uint64
from metalloid.arrays.ir.node import cast
from metalloid.arrays.ir.operands import (
    binary,
    binary_operands,
    is_number,
    native_operation,
    unary,
)
from metalloid.arrays.ir.ops import OPS
from metalloid.errors import unknown_keyword
from metalloid.numpy import complex_order, composed
from metalloid.numpy.array import as_ndarrays, in_type_of, ndarray, numpy_function, store
from metalloid.numpy.functions import reductions, scans
from metalloid.numpy.known_calls import KnownCalls, Watched

#: Functions of this package that reduce or scan like the methods of a universal function.
_REDUCE = {"add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max,
           "minimum": reductions.min, "logical_or": reductions.any,
           "logical_and": reductions.all}  # fmt: skip
_ACCUMULATE = {"add": scans.cumsum, "multiply": scans.cumprod, "maximum": scans.cummax,
               "minimum": scans.cummin}  # fmt: skip
_AT = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max",
       "minimum": "min"}  # fmt: skip


#: Comparisons, of which Python's integers are operands whatever their size.
_COMPARE = {"less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
            "greater_equal": operator.ge, "equal": operator.eq,
            "not_equal": operator.ne}  # fmt: skip
#: Kinds of types; Python's numbers convert to those of their own kind and of later ones.
_KINDS = "biufc"
_OF_HOST = "axes", "axis", "keepdims", "signature"  # options that NumPy's functions interpret
_OPTIONS = "out", "where", "casting", "order", "dtype", "subok", *_OF_HOST
#: Functions that refuse booleans, in NumPy as well.
_NOT_OF_BOOLS = ("subtract", "negative", "positive", "sign")


def _compared(name: str, a: Any, b: Any) -> Array | None:
    """The result of comparing an array with an integer that its type does not have."""
    for array, number, is_first in ((a, b, True), (b, a, False)):
        dtype = getattr(array, "dtype", None)
        if dtype is not None and dtype.kind in "iub" and isinstance(number, int):
            limits = np.iinfo(np.int64 if dtype.kind == "b" else dtype)
            if limits.min <= number <= limits.max:
                return None
            least = 0 if number > limits.max else 1
            result = bool(_COMPARE[name](least, 1 - least) if is_first
                          else _COMPARE[name](1 - least, least))  # fmt: skip
            return full(array.shape, result, device=as_array(array, name).device)
    return None


def _have_mixed_signs(*operands: Any) -> bool:
    types = [getattr(x, "dtype", bool_) for x in operands]
    return uint64 in types and any(dtype.kind == "i" for dtype in types)


def _of_mixed_signs(name: str, *operands: Any) -> Array | None:
    """The result of comparing signed integers with uint64: there is no type for both."""
    if not _have_mixed_signs(*operands):
        return None
    first, second = as_arrays(name, *operands)
    is_first = first.dtype.kind == "i"
    for_negative = bool(_COMPARE[name](0, 1) if is_first else _COMPARE[name](1, 0))
    result = getattr(ew, name)(first.astype(uint64), second.astype(uint64))
    return select(ew.less(first if is_first else second, 0), for_negative, result)


def _of_row(ufunc: np.ufunc) -> Callable[..., Any]:
    row = OPERATIONS[ufunc]
    apply = unary if row.operands == 1 else binary
    of_complex = complex_order.FUNCTIONS.get(row.name)

    def function(*operands: Any) -> Array:
        if row.name in _COMPARE:
            result = _compared(row.name, *operands)
            if result is None:
                result = _of_mixed_signs(row.name, *operands)
            if result is not None:
                return result
        if row.name == "divide":  # integers of any size
            operands = tuple(float(x) if type(x) is int else x for x in operands)
        if of_complex and any(x.dtype.kind == "c" for x in as_arrays(row.name, *operands)):
            first, second = map(Array, binary_operands(row.name, *operands))
            common = promote(first.dtype, second.dtype)
            return of_complex(first.astype(common), second.astype(common))
        return Array(apply(row, *_with_nodes(operands)))

    def integer_reciprocal(x: Any) -> Array:
        array = composed.bools_as_integers(as_array(x, row.name))
        if array.dtype.kind not in "iu":
            return function(array)
        is_unit = ew.equal(array, 1)
        if array.dtype.kind == "i":
            is_unit = ew.logical_or(is_unit, ew.equal(array, -1))
        return select(is_unit, array, 0)

    def exp2(x: Any) -> Array:
        array = as_array(x, row.name)
        return ew.exp(array * math.log(2)) if array.dtype.kind == "c" else function(array)

    def logical(*operands: Any) -> Array:
        return Array(apply(row, *(as_array(x, row.name).astype(bool_) for x in operands)))

    def integral(*operands: Any) -> Array:
        arrays = as_arrays(row.name, *operands)
        if any(x.dtype != bool_ for x in arrays):
            return function(*operands)
        result = function(*map(composed.bools_as_integers, arrays))
        return result.astype(bool_) if row.name in ("floor", "ceil", "trunc") else result

    if row.name == "reciprocal":
        return integer_reciprocal
    if row.name == "exp2":
        return exp2
    if row.dtype_kinds == "b":
        return logical
    is_integral = "i" in row.dtype_kinds and "b" not in row.dtype_kinds
    return integral if is_integral and row.name not in _NOT_OF_BOOLS else function


def _of_composition(ufunc: np.ufunc) -> Callable[..., Any]:
    function = composed.FUNCTIONS[ufunc.__name__]
    if ufunc.nin == 1:
        return function

    def combined(a: Any, b: Any) -> Any:
        return function(*map(Array, binary_operands(ufunc.__name__, a, b)))

    return combined


def _with_nodes(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of which at least one is an array."""
    if any(hasattr(value, "_node") for value in operands):
        return operands
    if all(map(is_number, operands)) and len(operands) == 2:
        operands = operands[0], as_array(operands[1], "ufunc")
    return operands


class ufunc:
    """An elementwise function: a generated kernel, or a composition of such functions.

    Attributes
    ----------
    nin, nout, nargs : int
        Numbers of operands, of results, and of both.
    identity : int or None
        The result of a reduction without elements.
    signature : str or None
        Of functions of matrices and vectors.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.add.reduce(np.ones((2, 3)), axis=1)
    array([3., 3.])
    >>> np.multiply.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """

    def __init__(self, numpys: np.ufunc) -> None:
        self._numpys = numpys
        self.__name__ = self.__qualname__ = numpys.__name__
        self.nin, self.nout, self.nargs = numpys.nin, numpys.nout, numpys.nargs
        self.identity, self.signature = numpys.identity, numpys.signature
        self.types, self.ntypes = numpys.types, numpys.ntypes
        #: How it is computed: by a "kernel", a "composition", or on the "host".
        self.kind = "host"
        self._function: Callable[..., Any] | None = None
        self._native: Any = None
        self._known = KnownCalls(self.nin)
        if numpys in OPERATIONS:
            self._function, self.kind = _of_row(numpys), "kernel"
            self._native = native_operation(OPERATIONS[numpys])
        elif numpys.__name__ in composed.FUNCTIONS:
            self._function, self.kind = _of_composition(numpys), "composition"
        row = OPS.get(getattr(OPERATIONS.get(numpys), "name", ""))
        summary = row.summary if row else f"See `numpy.{self.__name__}`"
        self.__doc__ = f"{summary}, element-wise, with the signature of ``numpy.{self.__name__}``."

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.__name__,)

    @property
    def __signature__(self) -> Any:
        return inspect.signature(self._numpys)

    def resolve_dtypes(self, dtypes: Any, **options: Any) -> Any:
        """Return the types of operands and results; see ``numpy.ufunc.resolve_dtypes``."""
        return self._numpys.resolve_dtypes(dtypes, **options)

    def __call__(self, *operands: Any, **options: Any) -> Any:
        """Apply the function to operands, which broadcast.

        Parameters
        ----------
        out : array or tuple of arrays, optional
            Arrays to store the results in.
        where : array of bool
            Elements to compute. Others keep the values of `out`, or are 0.
        casting : str
            The conversions that `dtype` and `out` allow.
        dtype : dtype, optional
            Type to which the operands are converted first.
        """
        if self._native is not None and not options and len(operands) == self.nin:
            try:
                result = native.elementwise(self._native, *operands)
            except (TypeError, OverflowError):  # complex numbers are compared, for example
                result = None
            if type(result) is ndarray:
                return result
        if type_rules.are_chosen or self._function is None:
            return self._call(*operands, **options)
        result = native.known_call(self._known.calls, operands, options)
        if result is None:
            with Watched() as watched:
                result = self._call(*operands, **options)
            self._known.learn(operands, options, result, watched)
        return result

    @numpy_function
    def _call(
        self,
        *operands: Any,
        out: Any = None,
        where: Any = True,
        casting: Any = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        **options: Any,
    ) -> Any:
        for name in options:
            if name not in _OF_HOST:
                raise unknown_keyword(self.__name__, name, _OPTIONS)
        inputs, positional = operands[: self.nin], operands[self.nin :]
        if len(inputs) < self.nin:
            raise TypeError(f"[{self.__name__}] expected {self.nin} operands, got {len(inputs)}.")
        if len(operands) > self.nargs:
            raise TypeError(
                f"[{self.__name__}] expected at most {self.nargs} operands and results, got "
                f"{len(operands)}."
            )
        if dtype is not None and not (self.__name__ in _COMPARE and as_dtype(dtype) == bool_):
            self._check_loop(as_dtype(dtype))
            inputs = tuple(self._converted(value, as_dtype(dtype), casting) for value in inputs)
        if self._function is None or options:
            result = call_on_host(self._numpys, inputs, options)
        else:
            result = self._function(*inputs)
        out = None if out is Ellipsis else out  # results are arrays anyway
        given = positional or (out if isinstance(out, tuple) else (out,) * (out is not None))
        if where is True and not given:
            return result
        results = result if isinstance(result, tuple) else (result,)
        targets = (*given, *(None,) * (len(results) - len(given)))
        stored = tuple(
            self._stored(value, target, where, casting)
            for value, target in zip(results, targets, strict=True)
        )
        return stored if isinstance(result, tuple) else stored[0]

    def _check_loop(self, dtype: Any) -> None:
        """Refuse types of which no result is."""
        results = {loop.split("->")[1][0] for loop in self.types}
        is_possible = kind_of(dtype) not in "biu" or any(np.dtype(r) == dtype for r in results)
        if not is_possible and results != {"?"} and self.__name__ not in _COMPARE:
            raise TypeError(f"[{self.__name__}] no result has type {dtype}.")

    def _converted(self, value: Any, dtype: Any, casting: Any) -> Any:
        if is_number(value) and (
            casting == "unsafe"
            or _KINDS.find(np.result_type(value).kind) <= _KINDS.find(kind_of(dtype))
        ):
            return Array(cast(as_array(value, self.__name__)._node, dtype))
        array = as_array(value, self.__name__)
        if not np.can_cast(array.dtype, dtype, casting):
            raise TypeError(
                f"[{self.__name__}] {array.dtype} does not convert to {dtype} with casting "
                f"{casting!r}."
            )
        return Array(cast(array._node, dtype))

    def _stored(self, result: Array, out: Any, where: Any, casting: Any) -> Any:
        if where is not True:
            others = zeros(result.shape, result.dtype) if out is None else as_array(out, "out")
            if out is not None:
                result = in_type_of(result, others, self.__name__, casting)
            mask = as_array(where, "where", result.device)
            result = select(mask.astype(bool_), result, others)
        return store(result, out, self.__name__, casting, broadcasts=True)

    # -- methods

    @numpy_function
    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
               keepdims: bool = False, initial: Any = np._NoValue, where: Any = True
               ) -> Any:  # fmt: skip
        """Combine the elements along an axis."""
        function: Any = _REDUCE.get(self.__name__)
        if function is None:
            options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "where": where}
            if initial is not np._NoValue:
                options["initial"] = initial
            return store(call_on_host(self._numpys.reduce, (array,), options), out, self.__name__)
        options = {"keepdims": keepdims, "where": where, "out": out}
        if self.__name__.startswith("logical"):
            return function(array, axis, **options)
        if self.__name__ in ("add", "multiply"):
            options["dtype"] = dtype
        return function(array, axis, initial=initial, **options)

    @numpy_function
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Combine the elements up to each one along an axis."""
        function: Any = _ACCUMULATE.get(self.__name__)
        if function is None:
            result = call_on_host(self._numpys.accumulate, (array, axis, dtype), {})
        else:
            values = as_array(array, self.__name__)
            is_sum = self.__name__ in ("add", "multiply")
            result = function(values, axis, dtype) if is_sum else function(values, axis)
        return store(result, out, self.__name__)

    @numpy_function
    def outer(self, a: Any, b: Any, /, **options: Any) -> Any:
        """Apply the function to all pairs of elements."""
        first, second = as_arrays(self.__name__, a, b)
        return self(first.reshape(*first.shape, *(1,) * second.ndim), second, **options)

    @numpy_function
    def at(self, a: Any, indices: Any, *operand: Any) -> None:
        """Update elements in place, repeatedly for repeated indices."""
        if isinstance(a, np.ndarray):
            call_on_host(self._numpys.at, (a, indices, *operand), {})
        elif self.__name__ in _AT:
            a[...] = getattr(Array(a._node).at[indices], _AT[self.__name__])(*operand)
        else:
            changed = a.__array__(copy=True)
            call_on_host(self._numpys.at, (changed, indices, *operand), {})
            a[...] = changed

    @numpy_function
    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None,
                 out: Any = None) -> Any:  # fmt: skip
        """Combine the elements of slices that start at indices."""
        result = call_on_host(self._numpys.reduceat, (array, indices, axis, dtype), {})
        return store(result, out, self.__name__)


UFUNCS: dict[str, ufunc] = {}
"""Functions by all names that NumPy has for them."""


def _define() -> None:
    by_numpys: dict[Any, ufunc] = {}
    for name in np.__all__:
        function = getattr(np, name)
        if isinstance(function, np.ufunc) and name != "isnat":  # of dates
            UFUNCS[name] = by_numpys.setdefault(function, ufunc(function))


_define()


def _named(name: str) -> ufunc:
    return UFUNCS[name]


def _compared_with_object(array: ndarray, other: Any, name: str) -> Any:
    """The result for None and other objects that compare by identity; no element is one."""
    method = "__eq__" if name == "equal" else "__ne__"
    if other is not None and getattr(type(other), method) is not getattr(object, method):
        return NotImplemented
    return as_ndarrays(full(array.shape, name == "not_equal", device=array.device))


def _with_fallback(method: str, name: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
    operate = getattr(Array, method)

    def fallback(self: Any, other: Any) -> Any:
        try:
            if name in _COMPARE and _have_mixed_signs(self, other):
                return UFUNCS[name](self, other)
            result = operate(self, other)
            if result is NotImplemented and name in ("equal", "not_equal"):
                return _compared_with_object(self, other, name)
            return result
        except (TypeError, OverflowError):  # for types that only the function takes
            return UFUNCS[name](*((other, self) if is_reflected else (self, other)))

    fallback.__doc__ = operate.__doc__
    return fallback


for _method, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
                       "eq": "equal", "ne": "not_equal", "mod": "remainder",
                       "floordiv": "floor_divide", "pow": "power", "lshift": "left_shift",
                       "rshift": "right_shift", "truediv": "divide"}.items():  # fmt: skip
    setattr(ndarray, f"__{_method}__", _with_fallback(f"__{_method}__", _name, False))
    if _name not in _COMPARE:
        setattr(ndarray, f"__r{_method}__", _with_fallback(f"__r{_method}__", _name, True))
