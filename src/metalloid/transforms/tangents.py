"""Sums and zeros of tangents and cotangents."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from metalloid.arrays.array import Array
from metalloid.arrays.functions.elementwise import conj
from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, broadcast
from metalloid.arrays.ir.operands import as_number
from metalloid.errors import TraceError


def zeros_like(node: Node, shape: Ints | None = None) -> Node:
    """Zeros of a node's type, and of its shape by default."""
    zero = as_number(0, node.dtype, node.device)
    return broadcast(zero, node.shape if shape is None else shape)


def added(tangents: Sequence[Node | None]) -> Node | None:
    """The sum; None stands for zero."""
    present = [Array(tangent) for tangent in tangents if tangent is not None]
    if not present:
        return None
    total: Array = functools.reduce(operator.add, present)
    return total._node


def conjugate(x: Array) -> Array:
    """The complex conjugate; real numbers stay as they are."""
    return conj(x) if kind_of(x.dtype) == "c" else x


def index_error(name: str) -> TraceError:
    """The error for a derivative with respect to indices."""
    return TraceError(
        f"[{name}] indices have no derivative. Use stop_gradient on them, or do not differentiate "
        "with respect to them."
    )
