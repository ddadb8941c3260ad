"""Einstein summation, as a sequence of products of two operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from metalloid.arrays.array import Array
from metalloid.arrays.functions.einsum_order import Extents, best_path, checked_path, report
from metalloid.arrays.functions.einsum_text import Label, Labels, extents_of, read
from metalloid.arrays.functions.elementwise import multiply
from metalloid.arrays.functions.tensor_contractions import diagonal_of, matmul
from metalloid.arrays.ir.dtypes import float32, kind_of, promote
from metalloid.arrays.ir.node import Node, cast, permute, reshape
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.views import moved_axes
from metalloid.arrays.lowering.reductions import reduced, without


class Term(NamedTuple):
    """An operand and the labels of its axes."""

    node: Node
    labels: Labels


def einsum(subscripts: str, /, *operands: Any,
           optimize: bool | str | Sequence[Any] = True) -> Array:  # fmt: skip
    """Sum products of elements over labelled axes (Einstein summation).

    Parameters
    ----------
    subscripts : str
        ``"ij,jk->ik"``: a letter for each axis of each operand, and the letters of the result.
        Letters that the result lacks are summed over. ``...`` stands for any other axes.
        Without ``->`` the result has these axes and the letters that occur once, sorted.
    *operands : Array
        The arrays. Extents of 1 broadcast.
    optimize : sequence, optional
        The order of the products, from `einsum_path` of this package or of NumPy. NumPy's other
        values (True, False, "greedy", "optimal") leave the choice to this function.

    Raises
    ------
    ValueError
        If the letters do not match the shapes, or the path is invalid.

    Notes
    -----
    Two operands are multiplied at a time. Up to four operands use the order with the fewest
    multiplications; more use a greedy search for the product that adds the fewest elements (D. G.
    A. Smith and J. Gray, "opt_einsum", Journal of Open Source Software 3(26), 2018). Products that
    do not need a matrix product fuse with other expressions.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([[1, 2], [3, 4]])
    >>> mtl.einsum("ij,jk->ik", x, x)
    array([[ 7, 10],
           [15, 22]], dtype=int64)
    >>> mtl.einsum("ii", x)
    array(5, dtype=int64)
    """
    nodes, labels, output_labels, extents = _parsed(subscripts, operands)
    dtype = functools.reduce(promote, (node.dtype for node in nodes))
    if kind_of(dtype) == "b":
        raise TypeError("[einsum] is not supported for bool. Convert to an integer type.")
    wide = float32 if kind_of(dtype) == "f" and dtype.itemsize == 2 else dtype
    terms = [
        _single(Term(cast(node, wide), own), extents)
        for node, own in zip(nodes, labels, strict=True)
    ]
    result = frozenset(output_labels)
    if isinstance(optimize, bool | str):
        path = best_path([term.labels for term in terms], result, extents)
    else:
        path = checked_path(subscripts, optimize, len(terms))
    for step in path:
        chosen = [terms[k] for k in step]
        terms = [term for k, term in enumerate(terms) if k not in step]
        while len(chosen) > 1:
            a, b, *chosen = chosen
            needed = result.union(*(term.labels for term in (*terms, *chosen)))
            chosen.insert(0, _product(a, b, needed))
        terms += chosen
    return Array(cast(_ordered(_summed(terms[0], output_labels), output_labels), dtype))


def einsum_path(subscripts: str, /, *operands: Any) -> tuple[list[Any], str]:
    """Return the order in which `einsum` multiplies, and a report of it.

    Parameters
    ----------
    subscripts, *operands
        See `einsum`.

    Returns
    -------
    path : list
        In NumPy's form: the word "einsum_path", then the indices of the operands of each
        product. The product is appended to the remaining operands. Pass it as `optimize`.
    report : str
        The products, and the number of multiplications of each.

    Examples
    --------
    >>> import metalloid as mtl
    >>> path, report = mtl.einsum_path("ij,jk,kl->il", *map(mtl.ones, [(9, 9), (9, 9), (9, 1)]))
    >>> path
    ['einsum_path', (1, 2), (0, 1)]
    >>> print(report)
    162 multiplications, in one sum 729
      (1, 2): jk,kl->jl, 81
      (0, 1): ij,jl->il, 81
    """
    nodes, labels, output_labels, extents = _parsed(subscripts, operands)
    terms = [
        frozenset(k for k, n in zip(own, node.shape, strict=True) if n == extents[k])
        for node, own in zip(nodes, labels, strict=True)
    ]
    path = best_path(terms, frozenset(output_labels), extents) or [(0,)]
    return ["einsum_path", *path], report(terms, path, output_labels, extents)


def _parsed(text: str, operands: Sequence[Any]) -> tuple[
    list[Node], list[Labels], Labels, Extents
]:  # fmt: skip
    """Nodes of the operands, labels of their axes and of the result's, and extents by label."""
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TypeError(f"[einsum] expected subscripts like 'ij,jk->ik' first, got {kind}.")
    nodes = [to_node(x, "einsum") for x in operands]
    shapes = [node.shape for node in nodes]
    labels, output_labels = read(text, shapes)
    return nodes, labels, output_labels, extents_of(text, labels, shapes)


# -- the products


def _single(term: Term, extents: Extents) -> Term:
    """Reduce a term to one axis per label, without the axes that broadcast."""
    node, labels = term
    short = [k for k, n in enumerate(node.shape) if n == 1 and extents[labels[k]] != 1]
    node = without(node, tuple(short))
    labels = tuple(label for k, label in enumerate(labels) if k not in short)
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            node = diagonal_of(moved_axes(node, (first, second), (-2, -1)))
            rest = (k for k in range(len(labels)) if k not in (first, second))
            labels = (*(labels[k] for k in rest), label)
    return Term(node, labels)


def _product(a: Term, b: Term, needed: frozenset[Label]) -> Term:
    """Multiply two terms, and sum over the labels that are not needed any more."""
    a, b = _summed(a, needed.union(b.labels)), _summed(b, needed.union(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    left = [label for label in a.labels if label not in shared]
    right = [label for label in b.labels if label not in shared]
    if inner and (left or right):
        first, second = _ordered(a, [*batch, *left, *inner]), _ordered(b, [*batch, *inner, *right])
        extents = first.shape[: len(batch)]
        rows, columns = first.shape[len(batch) : -len(inner)], second.shape[len(batch + inner) :]
        depth = math.prod(first.shape[-len(inner) :])
        product = matmul(
            Array(reshape(first, (*extents, math.prod(rows), depth))),
            Array(reshape(second, (*extents, depth, math.prod(columns)))),
        )._node
        return Term(reshape(product, (*extents, *rows, *columns)), (*batch, *left, *right))
    all_labels = (*batch, *left, *right, *inner)
    factors = [
        reshape(_ordered(term, [k for k in all_labels if k in term.labels]),
                tuple(_extent(term, k) for k in all_labels))
        for term in (a, b)
    ]  # fmt: skip
    return _summed(Term(multiply(*map(Array, factors))._node, all_labels), needed)


def _extent(term: Term, label: Label) -> int:
    return term.node.shape[term.labels.index(label)] if label in term.labels else 1


def _summed(term: Term, needed: Collection[Label]) -> Term:
    """Sum over the labels that are not needed, in the term's own type."""
    axes = tuple(k for k, label in enumerate(term.labels) if label not in needed)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in needed)
    return Term(reduced(term.node, "sum", axes, False), labels)


def _ordered(term: Term, labels: Sequence[Label]) -> Node:
    """Permute the axes into the order of labels."""
    return permute(term.node, tuple(term.labels.index(label) for label in labels))
