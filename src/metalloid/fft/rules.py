"""Rules of the primitive ``fft`` for transforms of functions.

A Fourier transform is linear. Its adjoint is the inverse transform with the opposite
normalisation. Transforms of and to real numbers use the first half of a symmetric row only, whose
elements, except for the first and the middle one, stand for two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import real_of
from metalloid.arrays.ir.node import Node
from metalloid.fft.library_calls import fitted
from metalloid.fft.transforms import OF_REALS, TO_REALS, transform
from metalloid.transforms.rules.registry import Rule, define_rule

Nodes = Sequence["Node | None"]
_ADJOINT_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (tangent,), (name, lengths, axes, *_) = tangents, params
    if tangent is None:
        return [None]
    if name in TO_REALS:
        lengths = (*lengths[:-1], lengths[-1] // 2 + 1)
    # Of the shape that the transform reads, so that the cotangent has the shape it returns.
    return [transform(fitted(tangent, lengths, axes), *params)]


def _transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (name, lengths, axes, norm, backend) = cotangents, params
    assert ct is not None
    adjoint = name[1:] if name.startswith("i") else f"i{name}"
    adjoint_params = adjoint, lengths, axes, _ADJOINT_NORM[norm], backend
    if name in OF_REALS:
        weighted = Array(ct) * _weights(ct, lengths[-1], axes[-1], 0.5)
        return [transform(weighted._node, *adjoint_params)]
    result = transform(ct, *adjoint_params)
    if name in TO_REALS:
        result = (Array(result) * _weights(result, lengths[-1], axes[-1], 2))._node
    return [result]


def _weights(half: Node, length: int, axis: int, weight: float) -> Array:
    """1 for the elements of a half row that stand for themselves, `weight` for the others."""
    index = arange(half.shape[axis], device=half.device)
    weights = where((index == 0) | (2 * index == length), 1, weight).astype(real_of(half.dtype))
    return weights.reshape((-1, *(1 for _ in half.shape[axis + 1 :])))


def _batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    name, lengths, axes, norm, backend = params
    return [transform(args[0], name, lengths, tuple(k + 1 for k in axes), norm, backend)]


define_rule("fft", Rule(_tangents, _batch, _transpose))
