"""Tracing: a function is called with tracers, and its results are expressions of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metalloid.arrays.ir.node import TRACED, TRACER, Node
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.errors import TraceError


class Trace:
    """A call of a function by a transform.

    Attributes
    ----------
    transform : str
        Its name, for messages.
    """

    def __init__(self, transform: str) -> None:
        self.transform = transform

    def tracer(self, value: Node, has_value: bool = True) -> Node:
        """A node that stands for an argument.

        Parameters
        ----------
        value : Node
        has_value : bool
            Whether the function may read it. Otherwise only its type and shape are known.
        """
        return self.placeholder(value, value.shape, (value,) if has_value else ())

    def placeholder(self, like: Node, shape: tuple[int, ...],
                    args: tuple[Node, ...] = ()) -> Node:  # fmt: skip
        """A tracer with the type and device of a node."""
        node = Node(TRACER, self, args, like.dtype, shape, like.device)
        node.flags |= TRACED
        return node

    def has_no_value(self) -> TraceError:
        """The error for a value that is read while only types and shapes are known."""
        name = self.transform
        return TraceError(
            f"[{name}] the function reads the values of an array, which are unknown while {name} "
            "traces it. 'if', 'float', 'int', 'item', 'tolist', 'print' and 'numpy.asarray' read "
            "them, and so do functions whose results have a shape that depends on values, such as "
            "'nonzero'. Use 'where' and other array functions, or compute the value outside."
        )


def end(tracers: Iterable[Node], results: Sequence[Node]) -> None:
    """Give tracers their values for good, so that results no longer depend on them."""
    traced = traced_nodes(results)
    for tracer in tracers:
        tracer.become(tracer.args[0])
    for node in traced:
        if node.args and node.kind is not TRACER:
            flags = node.flags & ~TRACED
            for arg in node.args:
                flags |= arg.flags
            node.flags = flags
