"""NumPy's functions of arrays: functions of this package by NumPy's function objects.

What has no counterpart here, or arguments that it does not take, is computed by NumPy from the
values, on the host; the results are arrays again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import ALL
from metalloid.arrays.ir.operands import as_python, binary, unary
from metalloid.arrays.ir.ops import OPS, Op
from metalloid.arrays.ir.substitute import is_traced
from metalloid.errors import TraceError

#: Operations by NumPy's universal functions.
OPERATIONS: dict[Any, Op] = {
    function: row
    for name, row in OPS.items()
    if isinstance(function := getattr(np, row.reference or name, None), np.ufunc)
}
_PRODUCTS = {np.matmul: "matmul", np.vecdot: "vecdot"}
_REDUCTIONS = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
               np.logical_or: "any", np.logical_and: "all"}  # fmt: skip
_SCANS = {np.add: "cumulative_sum", np.multiply: "cumulative_prod", np.maximum: "cummax",
          np.minimum: "cummin"}  # fmt: skip
_UPDATES = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply",
            np.maximum: "max", np.minimum: "min"}  # fmt: skip

#: Names of NumPy's parameters that are others here.
_RENAMED = {"ddof": "correction", "a_min": "min", "a_max": "max"}
_ALIASES = {"amax": "max", "amin": "min", "around": "round"}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


# -- universal functions


def call_ufunc(
    xp: Any, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a universal function, or a method of it, with an array among the inputs or outputs.

    Parameters
    ----------
    xp : module
        The namespace of the arrays.
    """
    out = options.get("out")
    if out is not None and any(_is_own(value) for value in out):
        rest = {name: value for name, value in options.items() if name != "out"}
        return _stored(getattr(ufunc, method)(*inputs, **rest), out)
    if method == "at":
        return _update(xp, ufunc, *inputs)
    result = NotImplemented if out else _computed(xp, ufunc, method, inputs, options)
    if result is NotImplemented:
        return _on_host(xp, getattr(ufunc, method), inputs, options)
    return result


def _computed(
    xp: Any, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """The result by functions of this package; NotImplemented if there is none."""
    row = OPERATIONS.get(ufunc)
    if method == "reduce" and ufunc in _REDUCTIONS and options.keys() <= {"axis", "keepdims"}:
        return getattr(xp, _REDUCTIONS[ufunc])(*inputs, **{"axis": 0, **options})
    if method == "accumulate" and ufunc in _SCANS and options.keys() <= {"axis"}:
        return getattr(xp, _SCANS[ufunc])(*inputs, **{"axis": 0, **options})
    if options:
        return NotImplemented
    if method == "outer" and row is not None and row.operands == 2:
        first, second = map(xp.asarray, inputs)
        column = first.reshape(*first.shape, *(1,) * second.ndim)
        return xp.Array(binary(row, column, second))
    if method == "__call__" and ufunc in _PRODUCTS:
        return getattr(xp, _PRODUCTS[ufunc])(*inputs)
    if method == "__call__" and row is not None:
        return xp.Array(unary(row, *inputs) if row.operands == 1 else binary(row, *inputs))
    return NotImplemented


def _update(xp: Any, ufunc: np.ufunc, target: Any, key: Any, *values: Any) -> None:
    """Update elements, repeatedly for repeated indices; an array is rebound to its new value."""
    if not _is_own(target):
        ufunc.at(target, *_host((key, *values)))
    elif ufunc in _UPDATES:
        target[...] = getattr(target.at[key], _UPDATES[ufunc])(*values)
    else:
        changed = target.__array__(copy=True)
        ufunc.at(changed, *_host((key, *values)))
        target[...] = changed


def _stored(result: Any, out: tuple[Any, ...]) -> Any:
    """Store results in the arrays of the parameter `out`."""
    results = result if isinstance(result, tuple) else (result,)
    stored = []
    for value, target in zip(results, out, strict=True):
        if target is not None:
            target[...] = value
        stored.append(value if target is None else target)
    return tuple(stored) if isinstance(result, tuple) else stored[0]


# -- other functions


def call_function(
    xp: Any, function: Any, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:  # fmt: skip
    """Call a function of NumPy with arrays among the arguments.

    Parameters
    ----------
    xp : module
        The namespace of the arrays.
    """
    out = options.get("out")
    if _is_own(out):
        rest = {name: value for name, value in options.items() if name != "out"}
        return _stored(function(*args, **rest), (out,))
    own = _counterparts(xp).get(function)
    if own is not None:
        arguments = _arguments(function, own, args, options)
        if arguments is not None:
            return own(*arguments[0], **arguments[1])
    return _on_host(xp, function, args, options)


@functools.cache
def _counterparts(xp: Any) -> dict[Any, Callable[..., Any]]:
    """Functions by NumPy's function objects."""
    table: dict[Any, Callable[..., Any]] = {}
    for own, theirs in ((xp, np), (xp.linalg, np.linalg), (xp.fft, np.fft)):
        for name in own.__all__:
            function = getattr(theirs, name, None)
            if hasattr(function, "_implementation"):  # it calls __array_function__
                table[function] = getattr(own, name)
    for name, alias in _ALIASES.items():
        table[getattr(np, name)] = getattr(xp, alias)
    return table | {
        np.shape: lambda x: x.shape,
        np.ndim: lambda x: x.ndim,
        np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
        np.real: lambda x: x.real,
        np.imag: lambda x: x.imag,
        np.cumsum: functools.partial(_scan, xp, xp.cumulative_sum),
        np.cumprod: functools.partial(_scan, xp, xp.cumulative_prod),
    }


def _scan(
    xp: Any, function: Callable[..., Any], x: Any, axis: Any = None, dtype: Any = None
) -> Any:
    x = xp.reshape(x, -1) if axis is None else x
    return function(x, axis=axis or 0, dtype=dtype)


_signature = functools.cache(inspect.signature)


def _arguments(
    function: Any, own: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Arguments | None:
    """Arguments of NumPy's function for its counterpart; None if that does not take them."""
    theirs = _signature(function)
    if not any(p.kind is p.VAR_POSITIONAL for p in theirs.parameters.values()):
        args, options = _by_name(theirs, args, options)
    try:
        _signature(own).bind(*args, **options)
    except TypeError:
        return None
    return args, dict(options)


def _by_name(
    signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Arguments:
    """Required arguments by position, others by name; without those that are NumPy's defaults."""
    required, optional = [], {}
    for name, value in signature.bind(*args, **options).arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            optional.update(value)
        elif parameter.default is parameter.empty:
            required.append(value)
        elif value is parameter.default or (
            isinstance(value, int | str) and value == parameter.default
        ):
            continue
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            required.append(value)
        else:
            optional[_RENAMED.get(name, name)] = value
    return tuple(required), optional


# -- on the host


def is_external(value: Any) -> bool:
    """Whether a value belongs to a library that calls NumPy's functions itself."""
    return hasattr(value, "__array_ufunc__") and not (
        _is_own(value) or isinstance(value, np.ndarray | np.generic)
    )


def _is_own(value: Any) -> bool:
    return hasattr(value, "_node")


def _on_host(
    xp: Any, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    operands = list(_own_arrays((args, dict(options))))
    if any(is_traced(operand._node) for operand in operands):
        raise TraceError(
            f"[{function.__name__}] NumPy computes it from values, which grad, vjp, jvp, "
            "vmap and compile cannot trace. Use a function of metalloid."
        )
    device = operands[0].device if operands else None
    return _arrays(xp, function(*_host(args), **_host(dict(options))), options.get("out"), device)


def _own_arrays(value: Any) -> Iterator[Any]:
    if _is_own(value):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _own_arrays(item)


def _host(value: Any) -> Any:
    """Convert arrays in arguments to NumPy's."""
    if _is_own(value):
        return value.__array__()
    if isinstance(value, dict):
        return {name: _host(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_host, value))
    return as_python(value)


def _arrays(xp: Any, value: Any, out: Any, device: Any) -> Any:
    """Convert NumPy's arrays in a result; those given as `out` are returned."""
    if isinstance(value, tuple | list):
        items = [_arrays(xp, item, out, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    is_given = value is out or (isinstance(out, tuple) and any(value is item for item in out))
    if is_given or not isinstance(value, np.ndarray | np.generic) or value.dtype not in ALL:
        return value
    return xp.asarray(value, device=device)
