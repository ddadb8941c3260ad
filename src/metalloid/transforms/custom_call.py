"""A function whose transforms are stated, and its calls."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.node import TRACED
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.primitives import bind
from metalloid.transforms.tree import TreeDef, flatten


class CustomFunction:
    """A function whose transforms are stated; see `custom_function`.

    Attributes
    ----------
    vjp_rule, jvp_rule, vmap_rule : callable or None
    recomputes : bool
        Whether its values are computed again for its gradient.
    """

    def __init__(self, fun: Callable[..., Any], recomputes: bool = False) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.recomputes = fun, recomputes
        self.vjp_rule: Callable[..., Any] | None = None
        self.jvp_rule: Callable[..., Any] | None = None
        self.vmap_rule: Callable[..., Any] | None = None

    @property
    def has_derivative(self) -> bool:
        """Whether its derivative is not simply that of what it computes."""
        return self.recomputes or self.vjp_rule is not None or self.jvp_rule is not None

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """State the vector-Jacobian product: ``rule(primals, cotangents, outputs)``.

        `primals` is a tuple of the arguments, or the argument if there is one. The rule returns the
        cotangents of the arguments, in their structure.
        """
        self.vjp_rule = rule
        return rule

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """State the Jacobian-vector product: ``rule(primals, tangents)`` returns tangents."""
        self.jvp_rule = rule
        return rule

    def vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """State the rule for `vmap`: ``rule(arguments, axes)`` returns the results and their axes.

        The axis of an argument without a batch is None.
        """
        self.vmap_rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        value = self.fun(*args, **kwargs)
        inputs, structure = flatten((args, kwargs))
        arrays = [leaf._node for leaf in inputs if isinstance(leaf, Array)]
        if not any(node.flags & TRACED for node in arrays):
            return value
        outputs, result_structure = flatten(value)
        nodes = [to_node(output, "custom_function") for output in outputs]
        call = CustomCall(self, inputs, structure, result_structure, len(nodes))
        types = [(node.dtype, node.shape) for node in nodes]
        results = bind("custom_function", [*arrays, *nodes], (call,), *types)
        return result_structure.unflatten(iter(map(Array, results)))


class CustomCall:
    """A call of a `CustomFunction`: the parameter of its primitive.

    The operands of the primitive are the array arguments, and then the results as the function
    computed them.

    Attributes
    ----------
    function : CustomFunction
    arguments, results : int
        Numbers of arrays.
    """

    def __init__(self, function: CustomFunction, inputs: Sequence[Any], structure: TreeDef,
                 result_structure: TreeDef, results: int) -> None:  # fmt: skip
        # The rules are those of the time of the call.
        self.function, self.results = copy.copy(function), results
        self._structure, self._result_structure = structure, result_structure
        self._constants = [None if isinstance(leaf, Array) else leaf for leaf in inputs]
        self.arguments = self._constants.count(None)

    def _called(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = iter(leaves)
        filled = [next(values) if c is None else c for c in self._constants]
        called: tuple[tuple[Any, ...], dict[str, Any]] = self._structure.unflatten(iter(filled))
        return called

    def flat(self, *arrays: Array) -> list[Array]:
        """The function, of arrays in a row."""
        args, kwargs = self._called(arrays)
        return flatten(self.function.fun(*args, **kwargs))[0]

    def argument_tree(self, leaves: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """Positional and keyword arguments as rules get them: one argument is no tuple."""
        args, kwargs = self._called(leaves)
        return args[0] if len(args) == 1 else args, kwargs

    def result_tree(self, leaves: Sequence[Any]) -> Any:
        """Results in their structure."""
        return self._result_structure.unflatten(iter(leaves))
