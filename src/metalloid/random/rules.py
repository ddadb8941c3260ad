"""The rule of the primitive ``weighted_choice`` for transforms of functions.

Other random numbers are elementwise functions of keys, which have no derivative, and of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.ir.node import Node, broadcast
from metalloid.random.sampling import weighted_choice
from metalloid.transforms.rules.registry import Rule, define_rule


def _batch(args: Sequence[Node], is_batched: Sequence[bool], params: object) -> list[Node]:
    weights, source = args
    if is_batched[0] or len(weights.shape) > 1:
        size = next(arg.shape[0] for arg, own in zip(args, is_batched, strict=True) if own)
        weights, source = (
            arg if own else broadcast(arg, (size, *arg.shape))
            for arg, own in zip(args, is_batched, strict=True)
        )
    return [weighted_choice(weights, source)]


define_rule("weighted_choice", Rule(None, _batch))
