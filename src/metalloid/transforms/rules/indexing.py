"""Rules of scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import int64
from metalloid.arrays.ir.node import Node, iota, reshape
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.lowering.indexing import gathered
from metalloid.transforms.rules.registry import Rule, define_rule, stacks
from metalloid.transforms.tangents import index_error, zeros_like

Nodes = Sequence["Node | None"]


def _scatter(base: Node, new: Node, indices: Sequence[Node], function: str) -> Node:
    result = base.dtype, base.shape
    return bind("scatter", [base, new, *indices], (function,), result)[0]


def _gather(base: Node, indices: Sequence[Node]) -> Array:
    return Array(gathered(base, list(range(len(indices))), list(indices)))


def _tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (base, new, *indices), (function,) = args, params
    (of_base, of_new, *of_indices), (result,) = tangents, results
    if any(of_indices):
        raise index_error("scatter")
    if of_base is None and of_new is None:
        return [None]
    along, updates = of_base or zeros_like(base), of_new or zeros_like(new)
    if function in ("set", "add"):
        return [_scatter(along, updates, indices, function)]
    if function == "subtract":
        return [_scatter(along, (-Array(updates))._node, indices, "add")]
    if function == "multiply":
        weights = _other_factors(base, new, indices, result)
        one = (Array(zeros_like(base)) + 1)._node
        scaled = (Array(along) * Array(_scatter(one, new, indices, "multiply")))._node
    else:  # elements equal to the extreme share the tangent
        is_base = (Array(base) == Array(result)).astype(base.dtype)
        is_new = (Array(new) == _gather(result, indices)).astype(base.dtype)
        count = _scatter(is_base._node, is_new._node, indices, "add")
        scaled = (Array(along) * is_base / Array(count))._node
        weights = is_new / _gather(count, indices)
    if of_new is None:
        return [scaled]
    return [_scatter(scaled, (Array(updates) * weights)._node, indices, "add")]


def _other_factors(base: Node, new: Node, indices: Sequence[Node], result: Node) -> Array:
    """For each new element, the product of all others with the same index."""
    factors = Array(new)
    is_zero = factors == 0
    safe = where(is_zero, 1, factors)
    nonzero = _scatter(base, safe._node, indices, "multiply")
    number = is_zero.astype(base.dtype)._node
    zeros = _scatter(zeros_like(base), number, indices, "add")
    is_only = _gather(zeros, indices) == 1
    return where(
        is_zero, where(is_only, _gather(nonzero, indices), 0), _gather(result, indices) / safe
    )


def _transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (cotangent,), indices, (function,) = cotangents, args[2:], params
    assert cotangent is not None
    at = [index for index in indices if index is not None]
    nothing: list[Node | None] = [None] * len(at)
    of_new = _gather(cotangent, at)
    if function == "add":
        return [cotangent, of_new._node, *nothing]
    # Of new elements with the same index one is stored: the one whose number is there.
    numbers = Array(reshape(iota((of_new.size,), 0, cotangent.device), of_new.shape))
    stored = _scatter(_integers(cotangent), numbers._node, at, "set")
    is_stored = _gather(stored, at) == numbers
    zeros = zeros_like(cotangent, of_new.shape)
    retained = _scatter(cotangent, zeros, at, "set")
    return [retained, where(is_stored, of_new, 0)._node, *nothing]


def _integers(like: Node) -> Node:
    return Array(zeros_like(like)).real.astype(int64)._node


def _batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    base, new, *indices = stacks(args, is_batched)
    return [_scatter(base, new, [iota(indices[0].shape, 0, base.device), *indices], *params)]


define_rule("scatter", Rule(_tangents, _batch, _transpose))
