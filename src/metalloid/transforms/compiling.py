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
from metalloid.arrays.ir.native import when_loaded
from metalloid.arrays.ir.node import BUFFER, CONSTANT, Node
from metalloid.arrays.ir.substitute import is_traced
from metalloid.runtime.memory.slot_offsets import offsets_of
from metalloid.settings import settings
from metalloid.transforms.captures import assign, check, replaced
from metalloid.transforms.extents import ExtentTrace
from metalloid.transforms.numbers import TracedNumber
from metalloid.transforms.program import NUMBERS, PlainCall, Program
from metalloid.transforms.shapeless import Template, adapted
from metalloid.transforms.state import begin, end
from metalloid.transforms.traced_call import TracedCall, layout_of
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
            key_items[position] = node.dtype, node.shape, layout_of(node).strides, node.device
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
        """Trace the function, or adapt a trace of arguments with other extents."""
        with self._lock:
            variant = self._find(key, numbers)  # another thread may have traced it
            if variant is not None:
                return variant
            if self._templates is None:
                return self._add(key, self._program(self._traced(args, kwargs), numbers))
            templates = self._templates.setdefault(without_sizes(key), [])
            extents = [n for node in nodes for n in node.shape]
            layouts = list(map(layout_of, nodes))
            name = self.__name__  # type: ignore[attr-defined]
            match = adapted(name, templates, numbers, extents, layouts)
            if not isinstance(match, Variant):
                template = self._template(self._traced(args, kwargs, len(numbers)), numbers)
                match = template.program([*numbers, *extents], layouts, reason=match)
                templates.append(template)
            return self._add(key, match)

    def _traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], count: int | None = None
    ) -> TracedCall:
        """Run the function with tracers for its arrays and numbers.

        Parameters
        ----------
        count : int, optional
            Of numbers, after which the extents of the arguments are traced as well.
        """
        self.traces += 1
        traced = TracedCall(count)
        leaves, structure = flatten((args, kwargs, self._inputs))
        positional, named, captured = structure.unflatten(map(traced.argument, leaves))
        traced.arguments = len(traced.tracers)
        begin(traced.state)
        try:
            with replaced(self._inputs, iter(flatten(captured)[0])):
                value = self._fun(*positional, **named)
                written, traced.state_structure = flatten(self._outputs)
        finally:
            traced.states = end()
            if isinstance(traced.numbers, ExtentTrace):
                traced.numbers.end()
        traced.results, traced.structure = flatten(value)
        traced.results += written
        return traced

    def _program(self, traced: TracedCall, numbers: Sequence[Any]) -> Variant:
        """The program of a trace, and its expression if calls may return expressions."""
        variant, roots = traced.variant(numbers), traced.roots
        if not roots:
            return variant
        nodes = traced.numbers.nodes
        if self.is_lazy and not nodes and not traced.states:
            variant = variant._replace(expression=Expression.of(roots, traced.tracers))
        return variant._replace(program=Program(roots, traced.tracers, traced.layouts, nodes))

    def _template(self, traced: TracedCall, numbers: Sequence[Any]) -> Template:
        """A trace whose extents are variables."""
        assert isinstance(traced.numbers, ExtentTrace)
        states = traced.layouts[traced.arguments :]
        return Template(
            traced.trace, traced.numbers, traced.roots, traced.tracers, states,
            traced.variant(numbers),
        )  # fmt: skip

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
