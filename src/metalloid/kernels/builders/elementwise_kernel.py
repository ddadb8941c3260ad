"""``ElementwiseKernel``: an expression for every element of arrays that broadcast."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.bound_calls import BoundCall, BoundCalls, ContiguousArguments, Result
from metalloid.kernels.builders.builder import Builder, Types, result_of
from metalloid.kernels.builders.builder_text import (
    Argument,
    layout_struct,
    layout_value,
    signature,
    typedefs,
)
from metalloid.kernels.generated_kernel import SIGNATURE, GeneratedKernel
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.operands import MAX_ELEMENTS, Operand
from metalloid.kernels.sources import metal_source
from metalloid.kernels.strides import broadcast_shape, collapse
from metalloid.runtime.devices.registry import get_device


class ElementwiseKernel(Builder):
    """A kernel defined by its operation on one element of each array.

    Parameters
    ----------
    in_params, out_params : str
        ``"float x, raw T y"``. A type is a scalar of MSL (or NumPy's name of it), ``float2`` for
        complex numbers, or a capital letter, which the arguments determine. A ``raw`` parameter
        is a pointer that the operation indexes itself.
    operation : str
        MSL statements. ``i`` is the index of the element.
    name : str, optional
        Name of the kernel, in its text and in messages.
    preamble : str, optional
        MSL before the kernel: functions, types, includes.
    math_mode : {"safe", "relaxed", "fast"}, optional
    bounds : {"checked", "unchecked"}, optional
        As for `library`.

    Attributes
    ----------
    name : str
    source : str
        The MSL source of the latest call; empty before the first.

    Raises
    ------
    ArgumentError
        If a parameter list is malformed. The text is compiled by the first call.

    Notes
    -----
    Arrays are read in place, with their strides and broadcast axes. Only arrays of another byte
    order, and ``raw`` arrays that are not contiguous, are copied.

    The interface is that of CuPy's ``ElementwiseKernel``; the text is MSL.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> squared_diff = mtl.ElementwiseKernel(
    ...     "float x, float y", "float z", "z = (x - y) * (x - y)", "squared_diff")
    >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> squared_diff(x, 2.0)
    array([[4., 1., 0.],
           [1., 4., 9.]], dtype=float32)
    >>> mirrored = mtl.ElementwiseKernel("raw T x, int n", "T y", "y = x[n - 1 - i]")
    >>> mirrored(x, 6, size=6)
    array([5., 4., 3., 2., 1., 0.], dtype=float32)
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        preamble: str = "",
        *,
        math_mode: MathMode = "safe",
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(
            name, in_params, out_params, ("i", "layout"), math_mode, bounds, preamble,
            operation=operation,
        )  # fmt: skip
        if not self.out_params:
            raise ArgumentError(f"[{name}] out_params is empty: the kernel would have no result.")
        self.operation = operation
        self._bound = BoundCalls()

    def __call__(self, *args: Any, size: int | None = None) -> Any:
        """Run the operation for every element.

        Parameters
        ----------
        *args
            A value for each input, and optionally an array for each output: arrays (NumPy,
            `Buffer`, DLPack, buffer protocol) and numbers.
        size : int, optional
            Number of elements, where all arrays are ``raw``.

        Returns
        -------
        ndarray or Buffer, or a tuple of them
            The outputs: the caller's own, or new ones (`Buffer` if an input is one).

        Raises
        ------
        ArgumentError
            If the arguments do not fit; nothing was run. It is a TypeError and a ValueError.
        CompileError
            With the lines of the operation and of the preamble.
        """
        is_usual = size is None and len(args) == len(self.in_params)
        device = get_device()
        known = ContiguousArguments.of(args, device) if is_usual else None
        key = None if known is None else (device, *known.types)
        if known is not None and (bound := self._bound.find(key)) is not None:
            return self._run(bound, known)
        inputs, given, types = self._operands(args)
        shape = self._shape(inputs, given, size)
        outputs = self._outputs(inputs, given, shape, types)
        if math.prod(shape):
            operands = [*inputs, *outputs]
            kernel = self._launch(operands, shape, types)
            if key is not None and kernel is not None:
                results = tuple(map(Result.like, outputs))
                bound = BoundCall(kernel, math.prod(shape), None, results, self.source)
                self._bound.remember(key, bound)
        return result_of(outputs, inputs)

    def _run(self, bound: BoundCall, known: ContiguousArguments) -> Any:
        """Run an earlier call on new outputs."""
        new = np.empty if known.lazy is None else known.lazy.__metalloid_new__
        outputs = bound.new_outputs(new)
        self.source = bound.text
        bound.run(known.values, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _shape(
        self, inputs: list[Operand], given: list[Operand | None], size: int | None
    ) -> tuple[int, ...]:
        followed = [
            operand
            for parameter, operand in zip(self._parameters, [*inputs, *given], strict=True)
            if operand is not None and not parameter.is_raw and not operand.is_number
        ]
        if size is not None:
            try:
                count = operator.index(size)
            except TypeError:
                count = -1
            if followed or not 0 <= count <= MAX_ELEMENTS:
                why = "is for kernels whose arrays are all raw" if followed else f"is {size!r}"
                raise ArgumentError(
                    f"[{self.name}] size {why}. Omit it, or pass a number of elements."
                )
            return (count,)
        if not followed and any(parameter.is_raw for parameter in self.in_params):
            raise ArgumentError(
                f"[{self.name}] all arrays are raw: pass the number of elements as size=."
            )
        shape = broadcast_shape(self.name, *(o.shape for o in followed if not o.is_number))
        if math.prod(shape) > MAX_ELEMENTS:
            raise ArgumentError(
                f"[{self.name}] the shape {shape} has {math.prod(shape)} elements; "
                f"a grid has at most {MAX_ELEMENTS}."
            )
        return shape

    def _launch(
        self, operands: list[Operand], shape: tuple[int, ...], types: Types
    ) -> Kernel | None:
        """Launch the kernel; return it if it takes the arrays as they are, without a layout."""
        parameters = self._parameters
        outputs = operands[len(self.in_params) :]
        for operand in operands[: len(self.in_params)]:
            operand.detach_from(outputs)
        strides = [
            (0,) * len(shape) if parameter.is_raw else operand.broadcast(shape)
            for parameter, operand in zip(parameters, operands, strict=True)
        ]
        followed = [k for k, p in enumerate(parameters) if not p.is_raw]
        extents, collapsed = collapse(shape, *(strides[k] for k in followed))
        steps = dict(zip(followed, collapsed, strict=True))
        arguments = tuple(
            Argument.of(parameter, operand, extents, steps.get(k, ()), k >= len(self.in_params))
            for k, (parameter, operand) in enumerate(zip(parameters, operands, strict=True))
        )
        layout = {
            argument.name: np.array([*steps[k], operands[k].start], np.int64)
            for k, argument in enumerate(arguments)
            if argument.form == "strided"
        }
        if layout:
            layout["shape"] = np.array(extents, np.uint32)
        generated = _generate(
            self.name, arguments, len(extents), layout_struct(layout),
            typedefs(parameters, types), self.operation, self.preamble,
        )  # fmt: skip
        kernel = self._compiled(generated, self.name, operands)
        values = [operand.bound for operand in operands]
        if layout:
            values.append(layout_value(layout))
        kernel(*values, threads=math.prod(shape))
        for output in outputs:
            output.write_back()
        return None if layout or any(operand.is_converted for operand in operands) else kernel


@functools.lru_cache(maxsize=256)
def _generate(
    name: str,
    arguments: tuple[Argument, ...],
    axes: int,
    layout: str,
    types: str,
    operation: str,
    preamble: str,
) -> GeneratedKernel:
    """Write the kernel around the operation."""
    declarations = [argument.declaration() for argument in arguments]
    if layout:
        declarations.append("constant Layout &layout")
    elements = "".join(
        f"  {element}\n"
        for argument in arguments
        if (
            element := argument.element(
                "i", f"element_at<{axes}>(i, layout.shape, layout.{argument.name})"
            )
        )
    )
    head = (
        f"{layout}kernel void {name}(\n    "
        f"{signature(declarations, ['uint i [[thread_position_in_grid]]'])})\n{{\n{elements}"
    )
    return GeneratedKernel(
        name,
        (
            ("builders.metal", metal_source("metalloid.kernels.builders", "builders")),
            (name + SIGNATURE, types),
            (f"{name}.preamble", f"{preamble}\n" if preamble else ""),
            (name + SIGNATURE, head),
            (f"{name}.operation", f"{operation};\n"),
            (name + SIGNATURE, "}\n"),
        ),
    )
