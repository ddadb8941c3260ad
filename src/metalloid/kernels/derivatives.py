"""Derivatives of kernels, as methods; `metalloid.differentiate` writes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from metalloid.errors import TracedArgument
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.program import Size

if TYPE_CHECKING:
    from metalloid.differentiate.adjoint import AdjointKernel
    from metalloid.kernels.kernel import Kernel

#: From arguments, cotangents of outputs, and outputs to cotangents of the arrays among the
#: arguments, None for zero.
VjpRule = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]


class DefinesVjp:
    """A kernel whose derivative can be stated."""

    _vjp_rule: VjpRule | None = None

    def define_vjp(self, rule: VjpRule) -> VjpRule:
        """State the derivative that `grad` and `vjp` use for calls on arrays.

        Without one, they use the adjoint that `metalloid.differentiate` writes.

        Parameters
        ----------
        rule : callable
            ``rule(arguments, cotangents, outputs)``, of tuples: the arguments of the call, the
            cotangents of the outputs, the outputs. It returns the cotangents of the arrays among
            the arguments in their order, None for zero.

        Returns
        -------
        callable
            The rule, so that this is a decorator.

        Examples
        --------
        >>> import metalloid as mtl
        >>> root = mtl.metal_kernel("root", ["x"], ["y"], "*y = sqrt(*x);")
        >>> @root.define_vjp
        ... def derivative(arguments, cotangents, outputs):
        ...     return [cotangents[0] / (2 * outputs[0])]
        >>> def f(x):
        ...     (y,) = root(inputs=[x], grid=1, output_shapes=[(1,)], output_dtypes=[x.dtype])
        ...     return y.sum()
        >>> mtl.grad(f)(mtl.asarray([4.0], dtype=mtl.float32))
        array([0.25], dtype=float32)
        """
        self._vjp_rule = rule
        return rule

    @property
    def vjp_rule(self) -> VjpRule | None:
        """The rule of `define_vjp`."""
        return self._vjp_rule


class Differentiable(DefinesVjp):
    """A kernel that has an adjoint."""

    _adjoints: dict[Any, AdjointKernel] | None = None

    def vjp(
        self, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> AdjointKernel:
        """Return the adjoint of the kernel: from adjoints of its outputs to those of its inputs.

        Parameters
        ----------
        wrt : sequence of str, optional
            Parameters whose adjoints are wanted: by default all pointers and references to
            floating-point numbers that the kernel only reads.
        outputs : sequence of str, optional
            Parameters whose adjoints are given: by default all that it may write.

        Returns
        -------
        AdjointKernel
            A kernel with MSL text; see `metalloid.differentiate.vjp`.

        Raises
        ------
        CompileError
            At the line of what is not differentiated.
        ArgumentError
            If there is no such parameter.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library('''
        ... kernel void square(device const float *x, device float *y,
        ...                    uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i]; }''')
        >>> adjoint = lib.square.vjp()
        >>> x, d_x = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
        >>> event = adjoint(x, np.empty(3, np.float32), np.ones(3, np.float32), d_x, threads=3)
        >>> d_x
        array([2., 4., 6.], dtype=float32)
        """
        if self._adjoints is None:
            self._adjoints = {}
        key = None if wrt is None else tuple(wrt), None if outputs is None else tuple(outputs)
        if key not in self._adjoints:
            differentiate = importlib.import_module("metalloid.differentiate")
            self._adjoints[key] = differentiate.vjp(self, *key)
        return self._adjoints[key]


def launch_traced(
    kernel: Kernel, values: Sequence[Any], threads: Size, group: Size, error: TracedArgument,
    timeout: float | None, check: bool | None,
) -> Event:  # fmt: skip
    """Launch a kernel on arrays of which a transform traces some.

    Raises
    ------
    TraceError
        If the launch is one that transforms do not support.
    """
    lazy = next((v for v in values if hasattr(v, "__metalloid_launch__")), None)
    if lazy is None or kernel.signature.threadgroup or timeout is not None or check:
        raise error
    lazy.__metalloid_launch__(kernel, values, threads, group)
    return FinishedEvent(0.0)
