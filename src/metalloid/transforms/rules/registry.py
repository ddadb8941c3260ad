"""The rules of primitives: how transforms see them.

Each primitive has one rule, registered by the module that knows its mathematics. Reverse mode
needs no rule of its own: the tangents of a rule are linear, and `transpose` turns them around (R.
Frostig et al., "Decomposing reverse-mode automatic differentiation", 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metalloid.arrays.ir.node import PRIMITIVE, Node, broadcast

#: From the operands, the parameters, the results and the tangents of the operands (None for zero)
#: to the tangents of the results.
Tangents = Callable[..., "Sequence[Node | None]"]
#: From the cotangents of the results (None for zero), the operands (None for those in which the
#: primitive is linear) and the parameters to the cotangents of the operands.
Transpose = Callable[..., "Sequence[Node | None]"]
#: From the operands, whether each is batched along axis 0, and the parameters to the results,
#: batched along axis 0.
Batch = Callable[..., "Sequence[Node]"]


@dataclass(frozen=True)
class Rule:
    """The rule of a primitive.

    Attributes
    ----------
    tangents : callable or None
        None if no result has a derivative, as those of `argsort`.
    batch : callable
    transpose : callable or None
        Of a primitive that is linear in operands.
    operands_of_tangents, operands_of_batch : callable or None
        From a node to the operands whose tangents and batches the rule needs; None: all.
    """

    tangents: Tangents | None
    batch: Batch
    transpose: Transpose | None = None
    operands_of_tangents: Callable[[Node], Sequence[Node]] | None = None
    operands_of_batch: Callable[[Node], Sequence[Node]] | None = None


_rules: dict[str, Rule] = {}


def define_rule(name: str, rule: Rule) -> None:
    """Register the rule of a primitive."""
    _rules[name] = rule


def rule_of(name: str) -> Rule:
    """The rule of a primitive."""
    return _rules[name]


def stacks(args: Sequence[Node], is_batched: Sequence[bool]) -> list[Node]:
    """Operands of a batching rule, all of them with the batch axis."""
    size = next(arg.shape[0] for arg, own in zip(args, is_batched, strict=True) if own)
    return [
        arg if own else broadcast(arg, (size, *arg.shape))
        for arg, own in zip(args, is_batched, strict=True)
    ]


def operands_of_tangents(node: Node) -> Sequence[Node]:
    """The operands of a node on whose tangents its own depends."""
    if node.kind is PRIMITIVE:
        rule = rule_of(node.data.name)
        if rule.tangents is None:
            return ()
        if rule.operands_of_tangents:
            return rule.operands_of_tangents(node)
    return node.args


def operands_of_batch(node: Node) -> Sequence[Node]:
    """The operands of a node on whose batches its own depends."""
    if node.kind is PRIMITIVE and (needed := rule_of(node.data.name).operands_of_batch):
        return needed(node)
    return node.args
