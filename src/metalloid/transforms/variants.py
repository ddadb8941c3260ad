"""Programs of a compiled function, and how a call finds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from metalloid.arrays.array import Array
from metalloid.arrays.ir.layout import Ints, contiguous
from metalloid.arrays.ir.node import BUFFER, CHECKED, ELEMENTWISE, PRIMITIVE, REDUCE, VIEW, Node
from metalloid.arrays.ir.primitives import structural
from metalloid.arrays.ir.substitute import traced_nodes, with_args
from metalloid.settings import settings
from metalloid.transforms.program import PlainCall, Program, checks_of
from metalloid.transforms.state import State
from metalloid.transforms.tree import TreeDef

#: Operations of a function that calls may add to the graph of their arguments.
_MAX_INLINED = 32


class Expression:
    """The operations of a traced function, to be applied to operands that have not been computed.

    Parameters
    ----------
    roots, inputs : sequence of Node
        Results, and the tracers of arrays.
    """

    def __init__(self, roots: Sequence[Node], inputs: Sequence[Node]) -> None:
        index_of = {node: k for k, node in enumerate(inputs)}
        self._operations: list[tuple[Node, Ints]] = []
        self._others: list[Node] = []  # operands that depend on no input
        operations = [node for node in traced_nodes(roots) if node not in index_of]
        index_of |= {node: len(inputs) + k for k, node in enumerate(operations)}

        def index(node: Node) -> int:
            if node not in index_of:
                self._others.append(node)
                return -len(self._others)
            return index_of[node]

        for node in operations:
            # Copies of nodes, as those of the trace become parts of a program.
            copy = Node(node.kind, node.data, (), node.dtype, node.shape, node.device)
            self._operations.append((copy, tuple(map(index, node.args))))
        self._roots = tuple(map(index, roots))

    @classmethod
    def of(cls, roots: Sequence[Node], inputs: Sequence[Node]) -> Expression | None:
        """The expression of a trace; None if it is large, or has other than pure operations."""
        own = set(inputs)
        nodes = [node for node in traced_nodes(roots) if node not in own]
        is_pure = all(
            (
                node.kind in (ELEMENTWISE, VIEW, REDUCE)
                or (node.kind is PRIMITIVE and node.data.name in structural)
            )
            and not node.flags & CHECKED  # which copies do not have
            for node in nodes
        )
        return cls(roots, inputs) if is_pure and len(nodes) <= _MAX_INLINED else None

    def on(self, operands: Sequence[Node]) -> list[Node]:
        """The results, as nodes."""
        nodes = list(operands)

        def at(index: int) -> Node:
            return nodes[index] if index >= 0 else self._others[-1 - index]

        for node, indices in self._operations:
            nodes.append(with_args(node, tuple(map(at, indices))))
        return list(map(at, self._roots))


class Variant(NamedTuple):
    """A program for some values of numbers.

    Attributes
    ----------
    fixed : dict
        Values of the numbers that the function has read, by index.
    program : Program or None
        None if no result is an array.
    outputs, state : TreeDef
        Structure of the result and of the captured outputs.
    others : list
        Leaves of both, in order: constants, and numbers that each call computes; None for arrays.
    states : list of State
        The states that the function uses; their values follow the other arrays, and results.
    reason : str
        Why it was made, if the arguments alone do not say it.
    expression : Expression or None
        For arguments that have not been computed.
    """

    fixed: dict[int, Any]
    program: Program | None
    outputs: TreeDef
    state: TreeDef
    others: list[Any]
    states: list[State]
    reason: str = ""
    expression: Expression | None = None

    def is_for(self, numbers: Sequence[Any]) -> bool:
        """Whether the numbers of a call have the values that the function has read."""
        return all(_is_same(numbers[k], value) for k, value in self.fixed.items())


def _is_same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


class CheckedCall:
    """Calls of one program with plain arguments, whose result is an array or a tuple of arrays.

    Parameters
    ----------
    checks : sequence
        See `Program.native`.
    is_tuple : bool
    """

    def __init__(self, checks: Sequence[Any], program: Program, is_tuple: bool) -> None:
        self._checks, self._program, self._is_tuple = checks, program, is_tuple
        self._version = settings.version

    def __call__(self, args: Sequence[Any]) -> Any:
        """The result of the program; None if the arguments are of other kinds."""
        given = self._match(args) if self._version == settings.version else None
        if given is None:
            return None
        results = self._program(*given)
        return tuple(map(Array, results)) if self._is_tuple else Array(results[0])

    def _match(self, args: Sequence[Any]) -> tuple[list[Node], list[Any]] | None:
        """The arrays and the numbers of a call."""
        if len(args) != len(self._checks):
            return None
        nodes: list[Node] = []
        numbers: list[Any] = []
        for value, expected in zip(args, self._checks):  # noqa: B905 - same length
            if type(value) is Array:
                node = value._node
                if node.kind is not BUFFER or type(expected) is type:
                    return None
                dtype, shape, strides, device = expected
                if (
                    node.dtype is not dtype
                    or node.shape != shape
                    or node.data[0] != strides
                    or node.device is not device
                ):
                    return None
                nodes.append(node)
            elif type(value) is expected:
                numbers.append(value)
            else:
                return None
        return nodes, numbers


def plain_calls(args: Sequence[Any], variant: Variant) -> tuple[PlainCall, ...]:
    """Functions for calls like one that has run; the first one that applies has the result."""
    outputs, program = variant.outputs, variant.program
    if program is None or variant.fixed or variant.states:
        return ()
    is_tuple = outputs.type is tuple and all(child.type is None for child in outputs.children)
    if not (is_tuple or outputs.type is None) or any(leaf is not None for leaf in variant.others):
        return ()
    checks = checks_of(args)
    if checks is None:
        return ()
    native, checked = program.native(checks, is_tuple), CheckedCall(checks, program, is_tuple)
    if native is None and program.is_recorded:  # there may be one when nothing records launches
        return ()
    return (checked,) if native is None else (native, checked)


def _key_text(item: Any) -> str:
    """An argument in the key of a program, in words."""
    if isinstance(item, type):
        return item.__name__
    if len(item) == 4:
        dtype, shape, strides, _ = item
        is_plain = strides == contiguous(shape).strides
        return f"{dtype}{list(shape)}" + ("" if is_plain else f" with strides {list(strides)}")
    first, second = item
    return f"{first}[]" if not isinstance(first, type) else repr(second)


def without_sizes(key: Any) -> Any:
    """The key of all programs whose arrays have the same types and numbers of axes."""
    structure, version, parts = key
    sizeless = [
        (part[0], len(part[1]), part[3]) if isinstance(part, tuple) and len(part) == 4 else part
        for part in parts
    ]
    return structure, version, tuple(sizeless)


def describe(key: Any, variant: Variant) -> str:
    """The arguments that a program is for."""
    text = ", ".join(map(_key_text, key[2])) or "no arguments"
    fixed = ", ".join(map(repr, variant.fixed.values()))
    return f"{text}; it has read {fixed}" if fixed else text


def why(before: Any, key: Any) -> str:
    """The reason to trace, by the keys of the program before and of this one."""
    if before is None:
        return "the first call"
    if before[0] != key[0]:
        return "another structure of the arguments"
    if before[1] != key[1]:
        return "another setting"
    pairs = [(a, b) for a, b in zip(before[2], key[2], strict=False) if a != b]
    changes = [f"{_key_text(b)} after {_key_text(a)}" for a, b in pairs]
    return ", ".join(changes) or "other arguments"
