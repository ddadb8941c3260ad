"""Kernels as functions of torch and of jax, with derivatives."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.differentiate.adjoint import AdjointKernel, adjoint_of
from metalloid.differentiate.derived import written_parameters
from metalloid.errors import ArgumentError
from metalloid.kernels.kernel import Kernel


class _Launch:
    """A kernel, and the size of a launch.

    Attributes
    ----------
    names : list of str
    written : list of int
        Positions of the parameters that the kernel writes.
    """

    def __init__(self, kernel: Kernel, threads: Any, group_size: Any) -> None:
        self.kernel, self.size = kernel, (threads, group_size)
        self.names = [parameter.name for parameter in kernel.signature.arguments]
        names = _written(kernel)
        self.written = [k for k, name in enumerate(self.names) if name in names]

    def run(self, values: Sequence[Any]) -> None:
        threads, group_size = self.size
        self.kernel(*values, threads=threads, group_size=group_size, wait=True)

    def run_adjoint(
        self, values: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int],
        shadows: Sequence[Any],
    ) -> None:  # fmt: skip
        """Set adjoints of `wrt`; cotangents become those of what outputs held before.

        Parameters
        ----------
        shadows : sequence
            Memory of the adjoints of `wrt`.
        """
        outputs = [k for k in self.written if _is_float(self.kernel, k)]
        adjoint = _adjoint(
            self.kernel, *(tuple(self.names[k] for k in each) for each in (wrt, outputs))
        )
        args = [*values, *cotangents, *shadows]
        stored = adjoint.storable(args, *self.size)
        for name, shadow in zip(adjoint.wrt, shadows, strict=True):
            if name not in stored:
                shadow[...] = 0
        adjoint.launch(args, *self.size, stored)


@functools.lru_cache(maxsize=64)
def _written(kernel: Kernel) -> frozenset[str]:
    return frozenset(written_parameters(kernel))


@functools.lru_cache(maxsize=64)
def _adjoint(kernel: Kernel, wrt: tuple[str, ...], outputs: tuple[str, ...]) -> AdjointKernel:
    return adjoint_of(kernel, wrt, outputs, in_place=True)


def _is_float(kernel: Kernel, position: int) -> bool:
    scalar = kernel.signature.arguments[position].layout.scalar
    return scalar is not None and scalar.name in ("float", "half", "bfloat")


def torch_function(kernel: Kernel) -> Callable[..., Any]:
    """A kernel as a function of tensors; see `Kernel.torch`."""
    torch: Any = importlib.import_module("torch")

    class KernelFunction(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, launch: _Launch, *values: Any) -> Any:
            tensors = [v.detach() if torch.is_tensor(v) else v for v in values]
            launch.run(tensors)
            written = [values[k] for k in launch.written]
            ctx.mark_dirty(*written)
            ctx.launch = launch
            ctx.values = [None if torch.is_tensor(v) else v for v in values]
            saved = [
                v.new_empty(0) if k in launch.written else v
                for k, v in enumerate(values)
                if torch.is_tensor(v)
            ]
            ctx.save_for_backward(*saved)
            ctx.types = [(v.shape, v.dtype) if torch.is_tensor(v) else None for v in values]
            return tuple(written)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            launch, saved = ctx.launch, iter(ctx.saved_tensors)
            values = [next(saved).detach() if v is None else v for v in ctx.values]
            for k in launch.written:
                shape, dtype = ctx.types[k]
                values[k] = torch.empty(shape, dtype=dtype, device=values[k].device)
            wrt = [
                k
                for k, needed in enumerate(ctx.needs_input_grad[1:])
                if needed and k not in launch.written
            ]
            shadows = [torch.empty_like(values[k], dtype=torch.float32) for k in wrt]
            given = {
                k: ct.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
                for k, ct in zip(launch.written, cotangents, strict=True)
                if _is_float(launch.kernel, k)
            }
            launch.run_adjoint(values, list(given.values()), wrt, shadows)
            shares = {**given, **dict(zip(wrt, shadows, strict=True))}
            return None, *(
                shares[k].to(values[k].dtype) if needed else None
                for k, needed in enumerate(ctx.needs_input_grad[1:])
            )

    def call(*args: Any, threads: Any, group_size: Any = None, **named: Any) -> Any:
        launch = _Launch(kernel, threads, group_size)
        values = kernel._binder.values(args, named)
        for k in launch.written:
            if not torch.is_tensor(values[k]):
                raise ArgumentError(f"[{kernel.name}] {launch.names[k]!r} must be a tensor.")
        results = KernelFunction.apply(launch, *values)
        return results[0] if len(results) == 1 else results

    return functools.update_wrapper(call, kernel, ("__doc__",), ())


def jax_function(kernel: Kernel) -> Callable[..., Any]:
    """A kernel as a function of jax; see `Kernel.jax`."""
    jax: Any = importlib.import_module("jax")
    numpy = jax.numpy

    def call(*args: Any, threads: Any, group_size: Any = None, **named: Any) -> Any:
        launch = _Launch(kernel, threads, group_size)
        values = [
            numpy.zeros(value.shape, value.dtype)
            if isinstance(value, jax.ShapeDtypeStruct)
            else value
            for value in kernel._binder.values(args, named)
        ]
        arrays = [k for k, value in enumerate(values) if isinstance(value, jax.Array)]
        for k in launch.written:
            if k not in arrays:
                raise ArgumentError(
                    f"[{kernel.name}] {launch.names[k]!r} is written: pass an array, or "
                    "jax.ShapeDtypeStruct(shape, dtype) for zeros."
                )
        smooth = [k for k in arrays if _is_float(kernel, k)]
        wrt = [k for k in smooth if k not in launch.written]
        floats = [n for n, k in enumerate(launch.written) if k in smooth]

        def filled(given: Sequence[Any]) -> list[Any]:
            full = list(values)
            for k, value in zip(arrays, given, strict=False):
                value = np.asarray(value)
                full[k] = value.copy() if k in launch.written else np.ascontiguousarray(value)
            return full

        def types(indices: Sequence[int], dtype: Any = None) -> tuple[Any, ...]:
            return tuple(
                jax.ShapeDtypeStruct(values[k].shape, dtype or values[k].dtype) for k in indices
            )

        def run(*given: Any) -> Any:
            full = filled(given)
            launch.run(full)
            return tuple(full[k] for k in launch.written)

        def run_adjoint(*given: Any) -> Any:
            cotangents = [np.array(each, np.float32) for each in given[len(arrays) :]]
            shadows = [np.empty(values[k].shape, np.float32) for k in wrt]
            launch.run_adjoint(filled(given), cotangents, wrt, shadows)
            return (*shadows, *cotangents)

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def function(*given: Any) -> Any:
            return jax.pure_callback(run, types(launch.written), *given)

        def forward(*given: Any) -> Any:
            return function(*given), given

        def backward(given: Any, cotangents: Any) -> Any:
            taken = [cotangents[n] for n in floats]
            order = [*wrt, *(launch.written[n] for n in floats)]
            results = jax.pure_callback(run_adjoint, types(order, np.float32), *given, *taken)
            shares = dict(zip(order, results, strict=True))
            return tuple(shares[k].astype(values[k].dtype) if k in shares else None for k in arrays)

        function.defvjp(forward, backward)
        results = function(*(values[k] for k in arrays))
        return results[0] if len(results) == 1 else results

    return functools.update_wrapper(call, kernel, ("__doc__",), ())
