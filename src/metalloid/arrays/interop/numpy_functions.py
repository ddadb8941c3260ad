"""NumPy's functions of arrays: those of `metalloid.numpy`, by NumPy's function objects.

Functions without a counterpart there are computed by NumPy from the values, on the host; the
results are arrays again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import ALL, type_rules
from metalloid.arrays.ir.operands import as_python
from metalloid.arrays.ir.ops import OPS, Op
from metalloid.arrays.ir.substitute import is_traced
from metalloid.errors import TraceError

#: Operations by NumPy's universal functions.
OPERATIONS: dict[Any, Op] = {
    function: row
    for name, row in OPS.items()
    if isinstance(function := getattr(np, row.reference or name, None), np.ufunc)
}


def call_ufunc(
    xp: Any, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a universal function, or a method of it, with an array among the inputs or outputs.

    Parameters
    ----------
    xp : module
        The namespace of the arrays.
    """
    import metalloid

    own = metalloid.numpy.COUNTERPARTS.get(ufunc)
    if own is None:
        return call_on_host(getattr(ufunc, method), inputs, options)
    return _call_own(xp, getattr(own, method), inputs, options)


def call_function(xp: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function of NumPy with arrays among the arguments.

    Parameters
    ----------
    xp : module
        The namespace of the arrays.
    """
    import metalloid

    own = metalloid.numpy.COUNTERPARTS.get(function)
    if own is None:
        return call_on_host(function, args, options)
    return _call_own(xp, own, args, options)


def _call_own(
    xp: Any, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a function of `metalloid.numpy` by the type rules of the arrays."""
    if type_rules.are_chosen or xp.__name__ == "metalloid.numpy":
        return function(*args, **options)
    type_rules.are_chosen = True  # a context manager would take as long as a short call
    try:
        return function(*args, **options)
    finally:
        type_rules.are_chosen = False


# -- on the host


def is_external(value: Any) -> bool:
    """Whether a value belongs to a library that calls NumPy's functions itself."""
    return hasattr(value, "__array_ufunc__") and not (
        _is_own(value) or isinstance(value, np.ndarray | np.generic)
    )


def _is_own(value: Any) -> bool:
    return hasattr(value, "_node")


def call_on_host(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy with the values of arrays, and make arrays of its results.

    Raises
    ------
    TraceError
        If an array is traced.
    """
    import metalloid

    operands = list(_own_arrays((args, dict(options))))
    if any(is_traced(operand._node) for operand in operands):
        raise TraceError(
            f"[{function.__name__}] NumPy computes it from values, which grad, vjp, jvp, "
            "vmap and compile cannot trace. Use a function of metalloid."
        )
    device = operands[0].device if operands else None
    result = function(*_host(args), **_host(dict(options)))
    return _arrays(metalloid, result, options.get("out"), device)


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
    return value if type_rules.are_numpys else as_python(value)


def _arrays(xp: Any, value: Any, out: Any, device: Any) -> Any:
    """Convert NumPy's arrays in a result; those given as `out` are returned."""
    if isinstance(value, tuple | list):
        items = [_arrays(xp, item, out, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    is_given = value is out or (isinstance(out, tuple) and any(value is item for item in out))
    if is_given or not isinstance(value, np.ndarray | np.generic) or value.dtype not in ALL:
        return value
    return xp.asarray(value, device=device)
