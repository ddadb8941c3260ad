"""Programs: the plan of a traced function, whose inputs and numbers each call passes."""

from __future__ import annotations

import ctypes
import functools
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from metalloid.arrays.array import Array
from metalloid.arrays.execution.evaluate import plan_of
from metalloid.arrays.execution.executable import run
from metalloid.arrays.execution.repeated_plan import MAX_ADDRESSES, Frame, RepeatedPlan
from metalloid.arrays.ir.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int64,
    uint64,
)
from metalloid.arrays.ir.index_checks import checks_below, verify
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.native import library
from metalloid.arrays.ir.node import (
    BUFFER,
    CONSTANT,
    IOTA,
    TRACER,
    Node,
    in_memory,
    topological_ids,
)
from metalloid.arrays.ir.operands import as_number
from metalloid.arrays.ir.primitives import lower
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.errors import TraceError
from metalloid.settings import settings
from metalloid.transforms.numbers import TracedNumber

#: Types of arguments that are inputs of a program, besides arrays.
NUMBERS = (bool, int, float, complex)
#: By dtype, types of numbers that native functions convert as `as_number` does. Parameters of other
#: integer types have 64 bits, too, so that Python has to look whether a number fits.
_NUMBERS_THAT_FIT: dict[DType, tuple[type, ...]] = {
    **dict.fromkeys((float16, bfloat16, float32, float64), (int, float)),
    **dict.fromkeys((int64, uint64), (int,)),
}

#: From the arguments of a call to its result; None if Python has to run it.
PlainCall = Callable[[tuple[Any, ...]], Any]


class Output(NamedTuple):
    """A result of a program.

    Attributes
    ----------
    leaf : int or None
        The leaf of whose memory it is a view.
    source : int
        Otherwise, the source of the plan that holds it.
    layout : Layout
        Relative to the offset of the leaf.
    dtype : numpy.dtype
    """

    leaf: int | None
    source: int
    layout: Layout
    dtype: DType


def checks_of(values: Sequence[Any]) -> list[Any] | None:
    """The kinds of arrays and numbers, for `Program.native`; None if there are other values."""
    checks: list[Any] = []
    for value in values:
        if type(value) in NUMBERS:
            checks.append(type(value))
        elif type(value) is Array and value._node.kind is BUFFER:
            node = value._node
            checks.append((node.dtype, node.shape, node.data[0], node.device))
        else:
            return None
    return checks


class Program:
    """The plan of a traced function.

    Parameters
    ----------
    roots : sequence of Node
        Results, as expressions of tracers.
    inputs : sequence of Node
        The tracers of arrays. They become leaves of the graph.
    layouts : sequence of Layout
        Of the arrays.
    numbers : sequence of (Node, TracedNumber)
        The tracers of numbers. They become constants.
    """

    def __init__(self, roots: Sequence[Node], inputs: Sequence[Node], layouts: Sequence[Layout],
                 numbers: Sequence[tuple[Node, TracedNumber]]) -> None:  # fmt: skip
        devices = {root.device for root in roots}
        if len(devices) > 1:
            names = ", ".join(sorted(device.name for device in devices))
            raise TraceError(f"[compile] the results are on several devices: {names}.")
        checks = checks_below(roots)
        roots = [*roots, *(code for code, _ in checks)]
        #: Those of indices; their codes are the last results.
        self._checks = [check for _, check in checks]
        lower(roots)  # while inputs are tracers: views of them are nodes, with offsets of their own
        traced = traced_nodes(roots)
        for node, layout in zip(inputs, layouts, strict=True):
            node.kind, node.data, node.flags = BUFFER, (layout.strides, 0), 0
            node.memory = _Placeholder()  # type: ignore[assignment]
        for node, _ in numbers:
            # Each NaN differs from all others: constants of equal value stay apart.
            node.kind, node.data, node.flags = CONSTANT, float("nan"), 0
        for node in traced:
            if node.kind is TRACER:  # of a transform inside
                node.become(node.args[0])
        graph = LinearizedGraph(list(dict.fromkeys(roots)))
        self._nodes, self._plan = graph.nodes, plan_of(graph, roots[0].device).plan
        # A tracer of a transform inside may stand for an input: look for what they share.
        position = {node.memory: k for k, node in enumerate(inputs)}
        self._leaves = [(position.get(leaf.memory), leaf) for leaf in graph.leaves]
        computed = {id(node.data): number for node, number in numbers}
        self._numbers = [
            (index, node, computed[id(node.data)])
            for index, node in enumerate(graph.nodes)
            if node.kind is CONSTANT and id(node.data) in computed
        ]
        at_leaf = {leaf: k for k, leaf in enumerate(graph.leaves)}
        stored = {result.node: result for result in self._plan.results}
        index_of = dict(zip(dict.fromkeys(roots), graph.roots, strict=True))
        self._outputs: list[Output] = []
        for root in roots:
            index = index_of[root]
            node = graph.nodes[index]
            if node.kind is BUFFER:
                layout = node.layout._replace(offset=0)
                self._outputs.append(Output(at_leaf[node], -1, layout, node.dtype))
            else:
                result = stored[index]
                leaf = self._plan.sources[result.source].leaf
                self._outputs.append(Output(leaf, result.source, result.layout, node.dtype))
        owned = dict.fromkeys(o.source for o in self._outputs if o.leaf is None)
        #: Of the arrays and numbers of a call, once the program has run.
        self._native: PlainCall | None = None
        self._has_run = False
        counters = {k: leaf.data[1] for k, leaf in enumerate(graph.leaves) if leaf.kind is IOTA}
        self._repeated = RepeatedPlan.of(self._plan, tuple(owned), bool(self._numbers), counters)
        #: Indices of the leaves that have memory, and by output the index of its memory among
        #: those and the results.
        self._passed = [k for k in range(len(graph.leaves)) if k not in counters]
        self._owners = [
            len(self._passed) + list(owned).index(o.source)
            if o.leaf is None
            else self._passed.index(o.leaf)
            for o in self._outputs
        ]

    def __call__(self, inputs: Sequence[Node], numbers: Sequence[Any]) -> list[Node]:
        """Run the program; return leaves with the results.

        Raises
        ------
        IndexError
            On devices with memory of their own, when an array is read.

        Parameters
        ----------
        inputs : sequence of Node
            Leaves, of the layouts for which it was made.
        numbers : sequence
        """
        return self._checked(self._run(inputs, numbers))

    def arrays(self, given: Sequence[Any], inputs: Sequence[Node],
               numbers: Sequence[Any]) -> list[Array]:  # fmt: skip
        """Run the program; return its results as arrays.

        Parameters
        ----------
        given : sequence
            Arrays and numbers in the order of a call.
        inputs, numbers
            The nodes of the former, and the latter. See `__call__`.
        """
        results = None if self._native is None else self._native(tuple(given))
        if results is not None:
            return list(results)
        results = list(map(Array, self(inputs, numbers)))
        if not self._has_run:
            self._has_run = True
            checks = checks_of(given)
            self._native = None if checks is None else self.native(checks, True)
        return results

    def _run(self, inputs: Sequence[Node], numbers: Sequence[Any]) -> list[Node]:
        leaves = [leaf if k is None else inputs[k] for k, leaf in self._leaves]
        nodes = _with_numbers(self._nodes, self._numbers, numbers)
        memories = [leaf.memory for leaf in leaves]
        offsets = [leaf.data[1] for leaf in leaves]
        plan = self._plan
        if self._repeated is not None and not any(offsets[k] for k in self._passed):
            passed = [memories[k] for k in self._passed]
            results = self._repeated(passed, nodes, False)  # type: ignore[arg-type]
            if results is not None:
                passed += results
                pairs = zip(self._owners, self._outputs)  # noqa: B905 - same length
                return [
                    in_memory(passed[owner], output.layout, output.dtype)  # type: ignore[arg-type]
                    for owner, output in pairs
                ]
        wait = plan.device.memory == "host"
        stored = run(plan, memories, offsets, nodes, (), wait, True)
        return [self._result(output, leaves, stored, offsets) for output in self._outputs]

    @property
    def is_recorded(self) -> bool:
        """Whether something records the launches of its device."""
        return self._plan.device.recording is not None

    def native(self, checks: Sequence[Any], is_tuple: bool) -> PlainCall | None:
        """A native function for calls with arguments of some kinds (native/program_call.c).

        Parameters
        ----------
        checks : sequence
            By argument: the type of a number, or the dtype, shape, strides and device of an array.
        is_tuple : bool
            Whether the function returns a tuple of its results, or one.

        Returns
        -------
        callable or None
            From the arguments to the result; None for arguments of other kinds.
        """
        functions = library()
        # Native functions hold it, and the program holds them: it must not refer to the program.
        pack = functools.partial(_pack, self._nodes, self._numbers)
        plan = None if self._repeated is None else self._repeated.native(pack)
        if functions is None or plan is None or len(checks) > MAX_ADDRESSES:
            return None
        passed = [self._leaves[k] for k in self._passed]
        constants = tuple(leaf for k, leaf in passed if k is None)
        positions = iter(range(-1, -1 - len(constants), -1))
        leaves = [next(positions) if k is None else k for k, _ in passed]
        outputs = tuple(
            (owner, output.dtype, output.layout.shape, output.layout[1:])
            for owner, output in zip(self._owners, self._outputs, strict=True)
        )
        packed = struct.pack(f"={len(leaves)}q", *leaves)
        call = (plan, tuple(checks), packed, constants, outputs, vars(settings), settings.version,
                is_tuple or bool(self._checks), topological_ids, BUFFER, (),
                self._native_numbers(checks))  # fmt: skip
        function: PlainCall = functions.mtl_program_call(ctypes.py_object(call))
        if not self._checks:
            return function

        def checked(args: tuple[Any, ...]) -> Any:
            results = function(args)
            if results is None:
                return None
            self._checked([result._node for result in results])
            return results[: -len(self._checks)] if is_tuple else results[0]

        return checked

    def _native_numbers(self, checks: Sequence[Any]) -> bytes:
        """By node of the graph, the index of the number that it is in a call; -1 for other nodes.

        Empty if Python has to compute numbers, or to look whether they fit a type.
        """
        given = [check for check in checks if isinstance(check, type)]
        positions = [-1] * len(self._nodes)
        for k, node, number in self._numbers:
            if not isinstance(number.compute, operator.itemgetter):
                return b""
            (index,) = number.inputs
            types = _NUMBERS_THAT_FIT.get(node.dtype, ())
            if index >= len(given) or given[index] not in types:
                return b""
            positions[k] = index
        return struct.pack(f"={len(positions)}q", *positions)

    def _checked(self, results: list[Node]) -> list[Node]:
        """The results without the codes of checks."""
        if not self._checks:
            return results
        first = len(results) - len(self._checks)
        memories = [node.memory for node in results[first:] if node.memory is not None]
        verify(zip(memories, self._checks, strict=True))
        return results[:first]

    def _result(self, output: Output, leaves: Sequence[Node], stored: Sequence[Memory | None],
                offsets: Sequence[int]) -> Node:  # fmt: skip
        if output.leaf is not None:
            memory, start = leaves[output.leaf].memory, offsets[output.leaf]
        else:
            memory, start = stored[output.source], 0
        assert memory is not None
        layout = output.layout
        if start:
            layout = layout._replace(offset=layout.offset + start)
        return in_memory(memory, layout, output.dtype)


def _with_numbers(nodes: Sequence[Node], constants: Sequence[tuple[int, Node, TracedNumber]],
                  numbers: Sequence[Any]) -> Sequence[Node]:  # fmt: skip
    """The nodes of a graph, with constants for the numbers of a call."""
    if not constants:
        return nodes
    nodes = list(nodes)
    for index, node, number in constants:
        nodes[index] = as_number(number.compute(numbers), node.dtype, node.device)
    return nodes


def _pack(nodes: Sequence[Node], constants: Sequence[tuple[int, Node, TracedNumber]], frame: Frame,
          numbers: Sequence[Any]) -> None:  # fmt: skip
    """Write the parameters of a frame."""
    frame.pack(_with_numbers(nodes, constants, numbers))


class _Placeholder:
    """Stands for the memory of an input, so that equal inputs are not merged."""

    sharing = 0  # tracers of transforms inside become copies of the input
