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
    from metalloid.differentiate.tangent import TangentKernel
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

    _derived: dict[Any, Any] | None = None

    def vjp(
        self,
        wrt: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        deterministic: bool = False,
    ) -> AdjointKernel:
        """Return the adjoint of the kernel: from adjoints of its outputs to those of its inputs.

        Parameters
        ----------
        wrt : sequence of str, optional
            Parameters whose adjoints are wanted: by default all pointers and references to
            floating-point numbers that the kernel only reads.
        outputs : sequence of str, optional
            Parameters whose adjoints are given: by default all that it may write.
        deterministic : bool, optional
            Whether to refuse kernels for which the last bits of the result would differ between
            runs.

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
        adjoint: AdjointKernel = self._derive("vjp", wrt, outputs, deterministic)
        return adjoint

    def jvp(
        self, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> TangentKernel:
        """Return a kernel that computes the outputs, and their tangents from those of the inputs.

        Parameters
        ----------
        wrt, outputs : sequence of str, optional
            Parameters with tangents that are given, and that are wanted; as those of `vjp`.

        Returns
        -------
        TangentKernel
            A kernel with MSL text; see `metalloid.differentiate.jvp`.

        Examples
        --------
        >>> import metalloid as mtl, numpy as np
        >>> lib = mtl.library('''
        ... kernel void square(device const float *x, device float *y,
        ...                    uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i]; }''')
        >>> x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
        >>> dot_x, dot_y = np.ones(3, np.float32), np.zeros(3, np.float32)
        >>> event = lib.square.jvp()(x, y, dot_x, dot_y, threads=3)
        >>> dot_y
        array([2., 4., 6.], dtype=float32)
        """
        tangent: TangentKernel = self._derive("jvp", wrt, outputs)
        return tangent

    def _derive(self, mode: str, *args: Any) -> Any:
        """The kernel that a function of `metalloid.differentiate` returns."""
        if self._derived is None:
            self._derived = {}
        args = tuple(tuple(arg) if isinstance(arg, Sequence) else arg for arg in args)
        if (mode, args) not in self._derived:
            function = getattr(importlib.import_module("metalloid.differentiate"), mode)
            self._derived[mode, args] = function(self, *args)
        return self._derived[mode, args]

    def torch(self) -> Callable[..., Any]:
        """Return the kernel as a function of torch tensors, through which gradients flow.

        It takes the arguments of the kernel, writes to tensors in place, and returns those that it
        writes: one, or a tuple.

        Returns
        -------
        callable

        Raises
        ------
        ImportError
            If torch is not installed.
        CompileError
            From the function: at the line of what is not differentiated.

        Examples
        --------
        >>> import metalloid as mtl
        >>> import torch  # doctest: +SKIP
        >>> lib = mtl.library('''
        ... kernel void square(device const float *x, device float *y,
        ...                    uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i]; }''')
        >>> square = lib.square.torch()  # doctest: +SKIP
        >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)  # doctest: +SKIP
        >>> square(x, torch.empty(3), threads=3).sum().backward()  # doctest: +SKIP
        >>> x.grad  # doctest: +SKIP
        tensor([2., 4., 6.])
        """
        function: Callable[..., Any] = _frameworks().torch_function(self)
        return function

    def jax(self) -> Callable[..., Any]:
        """Return the kernel as a function of jax arrays, through which gradients flow.

        It takes the arguments of the kernel and returns the arrays that it writes, for which
        ``jax.ShapeDtypeStruct(shape, dtype)`` may be passed: one, or a tuple.

        Returns
        -------
        callable

        Raises
        ------
        ImportError
            If jax is not installed.
        CompileError
            From the function: at the line of what is not differentiated.

        Examples
        --------
        >>> import metalloid as mtl
        >>> import jax  # doctest: +SKIP
        >>> lib = mtl.library('''
        ... kernel void square(device const float *x, device float *y,
        ...                    uint i [[thread_position_in_grid]]) { y[i] = x[i] * x[i]; }''')
        >>> square = lib.square.jax()  # doctest: +SKIP
        >>> x = jax.numpy.array([1.0, 2.0, 3.0])  # doctest: +SKIP
        >>> y = jax.ShapeDtypeStruct(x.shape, x.dtype)  # doctest: +SKIP
        >>> jax.grad(lambda x: square(x, y, threads=3).sum())(x)  # doctest: +SKIP
        Array([2., 4., 6.], dtype=float32)
        """
        function: Callable[..., Any] = _frameworks().jax_function(self)
        return function


def _frameworks() -> Any:
    return importlib.import_module("metalloid.differentiate.frameworks")


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
