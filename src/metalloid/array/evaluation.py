"""When expressions are computed: when their values are looked at, or here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalloid.array.array_object import Array
from metalloid.array.evaluate import evaluate
from metalloid.array.node import Node


def eval(*values: Any) -> None:
    """Compute arrays now, together: what they have in common is computed once.

    Parameters
    ----------
    *values : Array, or tuples, lists and dicts of them
        Other things in them are passed over.

    Raises
    ------
    OutOfMemory, KernelFault
        The arrays are as they were, and can be computed again.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.arange(3) * 2
    >>> mtl.eval(x)
    """
    evaluate(list(_nodes(values)))


def async_eval(*values: Any) -> None:
    """Start to compute arrays, and return; who looks at one waits for it."""
    evaluate(list(_nodes(values)), wait=False)


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Array):
        yield value._node
    elif isinstance(value, dict):
        yield from _nodes(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _nodes(item)
