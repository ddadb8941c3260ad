"""Matrix products as nodes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.arrays.build import broadcast_shape, pair
from metalloid.arrays.calls import HostCall
from metalloid.arrays.node import PRODUCT, Node, broadcast, cast, reshape
from metalloid.arrays.product_rule import FLOATS, SIMDGROUPS
from metalloid.arrays.types import kind_of, promote
from metalloid.settings import settings


@dataclass(frozen=True)
class Product(HostCall):
    """A matrix product: a function of the host, and a kernel of ours.

    Attributes
    ----------
    way : str
        One of those of `metalloid.config.products`.
    """

    way: str = "auto"


def matrix_product(x1: Any, x2: Any) -> Node:
    """The product over the last axis of one and the second to last of the other.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    a, b = pair("matmul", x1, x2)
    if not a.shape or not b.shape:
        raise ValueError(f"[matmul] wants at least one axis each, got {a.shape} and {b.shape}.")
    dtype = promote(a.dtype, b.dtype)
    if kind_of(dtype) == "b":
        raise TypeError("[matmul] has no meaning for bool.")
    depth = a.shape[-1]
    if depth != b.shape[-2:][0]:
        raise ValueError(f"[matmul] the shapes {a.shape} and {b.shape} do not fit.")
    batch = broadcast_shape("matmul", a.shape[:-2], b.shape[:-2])
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    left, right = cast(a, dtype), cast(b, dtype)
    if not rows:
        left = reshape(left, (1, depth))
    if not columns:
        right = reshape(right, (depth, 1))
    left = broadcast(left, (*batch, *left.shape[-2:]))
    right = broadcast(right, (*batch, *right.shape[-2:]))
    return reshape(_product(left, right), (*batch, *rows, *columns))


def _product(a: Node, b: Node) -> Node:
    """The product of two stacks of as many matrices of one type."""
    shape = (*a.shape[:-1], b.shape[-1])
    way = settings.products
    if way == SIMDGROUPS and a.dtype not in FLOATS:
        way = "registers"
    call = Product(_matmul, (), ((a.dtype, shape),), way=way)
    node = Node(PRODUCT, call, (a, b), a.dtype, shape, a.device)
    call.parts.append(weakref.ref(node))
    return node


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype in FLOATS:
        a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
    product: np.ndarray = np.matmul(a, b)
    return product
