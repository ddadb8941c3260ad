"""Tracing: a function is called with tracers, and its results are expressions of them."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.node import ABSTRACT, TRACED, TRACER, Node
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.errors import TraceError
from metalloid.runtime.devices.device import Device


class Trace:
    """A call of a function by a transform.

    Attributes
    ----------
    transform : str
        Its name, for messages.
    """

    def __init__(self, transform: str) -> None:
        self.transform = transform
        self._tracers: list[Node] = []
        self._is_open = True

    def tracer(self, value: Node, has_value: bool = True) -> Node:
        """A node that stands for an argument.

        Parameters
        ----------
        value : Node
        has_value : bool
            Whether the function may read it. Otherwise only its type and shape are known.
        """
        node = self.placeholder(value, value.shape, (value,) if has_value else ())
        self._tracers.append(node)
        return node

    def placeholder(self, like: Node, shape: tuple[int, ...],
                    args: tuple[Node, ...] = ()) -> Node:  # fmt: skip
        """A tracer with the type and device of a node."""
        node = Node(TRACER, self, args, like.dtype, shape, like.device)
        node.flags |= TRACED if args else TRACED | ABSTRACT
        return node

    def typed_placeholder(self, dtype: DType, device: Device) -> Node:
        """A tracer of shape ()."""
        node = Node(TRACER, self, (), dtype, (), device)
        node.flags |= TRACED | ABSTRACT
        return node

    def end(self, results: Sequence[Node]) -> None:
        """Give tracers their values for good, so that results no longer depend on them."""
        self._is_open = False
        for node in traced_nodes([*self._tracers, *results]):
            if node.kind is TRACER:
                # The value of a tracer may be a tracer of a transform around this one.
                if node.args and not node.data._is_open and not node.args[0].flags & TRACED:
                    node.become(node.args[0])
                continue
            flags = node.flags & ~(TRACED | ABSTRACT)
            for arg in node.args:
                flags |= arg.flags
            node.flags = flags

    def has_no_value(self) -> TraceError:
        """The error for a value that is read while only types and shapes are known."""
        name = self.transform
        return TraceError(
            f"[{name}] the function reads the values of an array, which are unknown while {name} "
            "traces it. 'if', 'float', 'int', 'item', 'tolist', 'print' and 'numpy.asarray' read "
            "them, and so do functions whose results have a shape that depends on values, such as "
            "'nonzero'. Use 'where' and other array functions, or compute the value outside."
        )
