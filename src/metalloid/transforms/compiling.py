"""`compile`: a function is traced once per structure of its arguments, and runs as one program."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.layout import Layout, contiguous
from metalloid.arrays.ir.native import offsets_of, when_loaded
from metalloid.arrays.ir.node import BUFFER, CONSTANT, Node
from metalloid.arrays.ir.substitute import is_traced
from metalloid.settings import settings
from metalloid.transforms.captures import assign, check, replaced
from metalloid.transforms.extents import ExtentTrace
from metalloid.transforms.numbers import NumberTrace, TracedNumber
from metalloid.transforms.program import NUMBERS, PlainCall, Program
from metalloid.transforms.shapeless import Template, adapted
from metalloid.transforms.state import begin, end
from metalloid.transforms.tracing import Trace
from metalloid.transforms.tree import flatten
from metalloid.transforms.variants import (
    Expression,
    Variant,
    describe,
    plain_calls,
    why,
    without_sizes,
)

#: Programs of one function; more of them are a sign of values that always differ.
MAX_PROGRAMS = 256
#: Programs that a call tries before it looks at the structure of its arguments.
MAX_PLAIN_CALLS = 4


def compile(fun: Callable[..., Any], inputs: Any = None, outputs: Any = None,
            shapeless: bool = False) -> CompiledFunction:  # fmt: skip
    """Return a function that traces `fun` once, and then runs it as one program.

    A call with arrays of other types, shapes or strides traces again, and so does another value of
    an argument that is neither an array nor a number. Numbers may change, unless `fun` reads them,
    for example in ``if``.

    Parameters
    ----------
    fun : callable
        Its arguments and results are arrays, numbers, or nested lists, tuples and dictionaries of
        them. Arrays that it uses otherwise are constants of the program.
    inputs : list or dict, optional
        Containers of arrays that `fun` reads; each call reads their current arrays.
    outputs : list or dict, optional
        Containers whose arrays `fun` replaces; each call replaces them.
    shapeless : bool
        Whether calls with other extents, of the same number of axes, use the trace. Extents are
        variables then, also where `fun` computes with them. It is traced again where a function of
        the library chooses by size, as in a broadcast of an extent that is 1 or no longer is.

    Returns
    -------
    CompiledFunction
        Its attribute ``traces`` is the number of traces so far; `metalloid.explain` tells the
        reason of each.

    Raises
    ------
    TraceError
        From the function returned: if `fun` reads the values of an array.
    ValueError
        From the function returned, if it is shapeless: if `fun` reads an extent that has changed,
        as in ``if`` and ``range``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> step = mtl.compile(lambda x, rate: x - rate * mtl.sin(x))
    >>> step(mtl.zeros(2), 0.1), step(mtl.zeros(2), 0.2), step.traces
    (array([0., 0.], dtype=float32), array([0., 0.], dtype=float32), 1)
    """
    check("inputs", inputs)
    check("outputs", outputs)
    return CompiledFunction(fun, inputs, outputs, shapeless)


class CompiledFunction:
    """A function and its programs.

    Attributes
    ----------
    traces : int
        How often the function was traced.
    is_lazy : bool
        Whether calls with arguments that have not been computed return expressions of them, if the
        function has few operations. Otherwise they compute the arguments first.
    """

    __slots__ = ("__dict__", "__weakref__", "_calls")

    def __init__(self, fun: Callable[..., Any], inputs: Any, outputs: Any,
                 shapeless: bool) -> None:  # fmt: skip
        functools.update_wrapper(self, fun)
        self._fun, self._inputs, self._outputs = fun, inputs, outputs
        self._variants: dict[Any, list[Variant]] = {}
        self._templates: dict[Any, list[Template]] | None = {} if shapeless else None
        self._lock = threading.RLock()
        self._plain_calls: dict[Any, tuple[PlainCall, ...]] = {}
        #: Tried first, by native functions (native/program_call.c) or `__call__`.
        self._calls: tuple[PlainCall, ...] = ()
        self.traces = 0
        self.is_lazy = False

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind it as a method."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for some arguments; trace the function if there is none."""
        if not kwargs:
            for call in self._calls:
                result = call(args)
                if result is not None:
                    return result
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Find the program by the structure of the arguments."""
        leaves, structure = flatten((args, kwargs, self._inputs))
        nodes: list[Node] = []
        numbers: list[Any] = []
        given: list[Any] = []  # both, in order
        key_items: list[Any] = []
        positions: list[int] = []
        missing: list[Node] = []
        for leaf in leaves:
            if type(leaf) in NUMBERS:
                numbers.append(leaf)
                given.append(leaf)
                key_items.append(type(leaf))
                continue
            node = getattr(leaf, "_node", None)
            if node is None:
                key_items.append(_constant_key(leaf))
                continue
            if is_traced(node):  # the transform around this one sees the function itself
                return self._fun(*args, **kwargs)
            given.append(leaf)
            if node.kind is CONSTANT:
                numbers.append(node.data)
                key_items.append((node.dtype, node.device))
                continue
            if node.kind is not BUFFER:
                missing.append(node)
            nodes.append(node)
            positions.append(len(key_items))
            key_items.append(None)  # the layout of a node is known when it is evaluated
        # Expressions on memory that another library may write have to be evaluated now.
        is_lazy = bool(missing) and self.is_lazy and not any(node.is_shared for node in nodes)
        if missing and not is_lazy:
            evaluate(missing, wait=False)
            if not kwargs:
                for call in self._calls:
                    result = call(args)
                    if result is not None:
                        return result
        for position, node in zip(positions, nodes, strict=True):
            key_items[position] = node.dtype, node.shape, _layout(node).strides, node.device
        key = structure, settings.version, tuple(key_items)
        variant = self._find(key, numbers) or self._trace(key, args, kwargs, numbers, nodes)
        results: list[Array] = []
        if is_lazy and variant.expression is None:
            evaluate(missing, wait=False)
            return self._call(args, kwargs)
        if is_lazy and variant.expression is not None:
            results = list(map(Array, variant.expression.on(nodes)))
        elif variant.program is not None:
            states = [state.read() for state in variant.states]
            nodes += [value._node for value in states]
            results = variant.program.arrays([*given, *states], nodes, numbers)
        for state in reversed(variant.states):
            state.write(results.pop())
        values = iter(results)
        filled = iter(
            [
                next(values) if leaf is None
                else leaf.compute(numbers) if isinstance(leaf, TracedNumber)
                else leaf
                for leaf in variant.others
            ]
        )  # fmt: skip
        value = variant.outputs.unflatten(filled)
        if self._outputs is not None:
            assign(self._outputs, variant.state, filled)
        elif self._inputs is None and not kwargs and not is_lazy and key not in self._plain_calls:
            self._remember(key, plain_calls(args, variant))
        return value

    def _remember(self, key: Any, calls: tuple[PlainCall, ...]) -> None:
        """Try these functions first in later calls."""
        if not calls:
            return
        others = list(self._plain_calls.items())[: MAX_PLAIN_CALLS - 1]
        self._plain_calls = {key: calls, **dict(others)}
        self._calls = tuple(chain.from_iterable(self._plain_calls.values()))

    def explain(self) -> str:
        """Describe the programs, and why each was traced."""
        lines = [f"{self.__name__}: traced {self.traces} times"]  # type: ignore[attr-defined]
        before: Any = None
        for key, variants in self._variants.items():
            for k, variant in enumerate(variants):
                reason = "another value of a number that it reads" if k else why(before, key)
                if variant.reason:
                    reason = f"{reason} ({variant.reason})"
                lines.append(f"{len(lines)}. {reason}: {describe(key, variant)}")
            before = key
        return "\n".join(lines)

    def _find(self, key: Any, numbers: Sequence[Any]) -> Variant | None:
        for variant in self._variants.get(key, ()):
            if variant.is_for(numbers):
                return variant
        return None

    def _trace(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
               numbers: Sequence[Any], nodes: Sequence[Node]) -> Variant:  # fmt: skip
        with self._lock:
            variant = self._find(key, numbers)  # another thread may have traced it
            if variant is not None:
                return variant
            reason = ""
            if self._templates is not None:
                templates = self._templates.setdefault(without_sizes(key), [])
                extents = [n for node in nodes for n in node.shape]
                match = adapted(self.__name__, templates, numbers, extents,  # type: ignore[attr-defined]
                                list(map(_layout, nodes)))  # fmt: skip
                if isinstance(match, Variant):
                    return self._add(key, match)
                reason = match
            self.traces += 1
            trace = Trace("compile")
            traced = (
                NumberTrace(trace.typed_placeholder) if self._templates is None
                else ExtentTrace(trace.typed_placeholder, len(numbers))
            )  # fmt: skip
            tracers: list[Node] = []
            layouts: list[Layout] = []
            given: list[Any] = []
            leaves, structure = flatten((args, kwargs, self._inputs))
            count = 0
            for leaf in leaves:
                node = getattr(leaf, "_node", None)
                if type(leaf) in NUMBERS:
                    given.append(traced.number(count, leaf))
                    count += 1
                elif node is None:
                    given.append(leaf)
                elif node.kind is CONSTANT:
                    number = traced.number(count, node.data)
                    given.append(Array(number.as_node(node.dtype, node.device)))
                    count += 1
                else:
                    shape = node.shape
                    if isinstance(traced, ExtentTrace):
                        shape = traced.extents(shape)
                    tracers.append(trace.placeholder(node, shape))
                    layouts.append(_layout(node))
                    given.append(Array(tracers[-1]))
            positional, named, captured = structure.unflatten(iter(given))

            def trace_state(value: Array) -> Array:
                tracers.append(trace.placeholder(value._node, value.shape))
                layouts.append(value._node.layout)
                return Array(tracers[-1])

            begin(trace_state)
            try:
                with replaced(self._inputs, iter(flatten(captured)[0])):
                    value = self._fun(*positional, **named)
                    captured_results, state_structure = flatten(self._outputs)
            finally:
                used = end()
                if isinstance(traced, ExtentTrace):
                    traced.end()
            results, result_structure = flatten(value)
            results += captured_results
            roots = [leaf._node for leaf in results if isinstance(leaf, Array)]
            states = [state for state, _, _ in used]
            roots += [last._node for _, _, last in used]
            others = [None if isinstance(leaf, Array) else leaf for leaf in results]
            fixed = {k: numbers[k] for k in traced.fixed}
            variant = Variant(fixed, None, result_structure, state_structure, others, states)
            if isinstance(traced, ExtentTrace):
                own = len(nodes)
                template = Template(trace, traced, roots, tracers, layouts[own:], variant)
                variant = template.program([*numbers, *extents], layouts[:own], reason)
                templates.append(template)
            elif roots:
                if self.is_lazy and not traced.nodes and not used:
                    variant = variant._replace(expression=Expression.of(roots, tracers))
                program = Program(roots, tracers, layouts, traced.nodes)
                variant = variant._replace(program=program)
            return self._add(key, variant)

    def _add(self, key: Any, variant: Variant) -> Variant:
        """Keep a program for later calls."""
        if sum(map(len, self._variants.values())) >= MAX_PROGRAMS:
            self._variants.clear()
        self._variants.setdefault(key, []).append(variant)
        return variant


@when_loaded
def _define_calls(functions: Any) -> None:
    """Let native functions look for the program of a call."""
    (offset,) = offsets_of(CompiledFunction, ["_calls"]) or (None,)
    if offset is not None:
        functions.mtl_define_calls(ctypes.py_object(CompiledFunction), ctypes.c_uint64(offset))


def _layout(node: Node) -> Layout:
    """The layout of an array, if it has not been computed, when it will have been."""
    return node.layout if node.kind is BUFFER else contiguous(node.shape)


def _constant_key(leaf: Any) -> Any:
    """A leaf that is neither an array nor a number, as a part of the key."""
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"[compile] an argument of type {type(leaf).__name__} is neither an array, a number, "
            "a container of them, nor hashable."
        ) from None
    return (type(leaf), leaf)
