"""The base of ReductionKernel and ScanKernel: parameters, arguments, temporary memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.builders.axes import AxisPlan
from metalloid.kernels.builders.axis_text import AXIS_NAMES, AxisText
from metalloid.kernels.builders.builder import Builder, Types
from metalloid.kernels.builders.builder_text import Argument, layout_struct, layout_value, typedefs
from metalloid.kernels.generated_kernel import GeneratedKernel
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.metal_kernel_names import used_identifiers
from metalloid.kernels.operands import Operand
from metalloid.runtime.memory.buffer import Buffer

Kernels = Callable[[str], Kernel]


class AxisKernel(Builder):
    """A kernel made of expressions that goes along axes; base of the two builders."""

    #: Name of the expression that makes one of two.
    _combining: ClassVar[str]

    def __init__(
        self,
        in_params: str,
        out_params: str,
        expressions: dict[str, str],
        name: str,
        reduce_type: str | None,
        preamble: str,
        math_mode: MathMode,
        bounds: Bounds | None,
    ) -> None:
        super().__init__(
            name, in_params, out_params, AXIS_NAMES, math_mode, bounds, preamble, **expressions
        )
        for what, text in expressions.items():
            if not text.strip():
                raise ArgumentError(f"[{name}] {what} is empty. Write an MSL expression.")
        if not self.out_params or any(parameter.is_raw for parameter in self.out_params):
            raise ArgumentError(
                f"[{name}] out_params expects at least one output; outputs cannot be raw: "
                f"{out_params!r}."
            )
        self.expressions = expressions
        self.reduce_type = reduce_type or self.out_params[0].type
        self._uses_index = "i" in used_identifiers(expressions["map_expr"], preamble)

    def _arguments(
        self, args: Sequence[Any], axis: Any, out: Any
    ) -> tuple[list[Operand], list[Operand | None], dict[str, np.dtype[Any]], AxisPlan]:
        if out is not None:
            if len(args) != len(self.in_params):
                raise ArgumentError(
                    f"[{self.name}] the outputs were passed twice: as arguments and as out=."
                )
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        inputs, given, types = self._operands(args)
        return inputs, given, types, AxisPlan(self.name, self.in_params, inputs, axis)

    def _text(self, operands: Sequence[Operand], plan: AxisPlan, types: Types) -> AxisText:
        """The source for this call; arguments whose strides are followed have them in it."""
        arguments = []
        for k, (parameter, operand) in enumerate(zip(self._parameters, operands, strict=True)):
            form = "raw" if parameter.is_raw else "number" if operand.is_number else "strided"
            is_written = k >= len(self.in_params)
            arguments.append(Argument(parameter.name, parameter.type, form, is_written))
        return AxisText(
            name=self.name,
            arguments=tuple(arguments),
            axes=plan.axes,
            layout=layout_struct(plan.layout),
            types=typedefs(self._parameters, types),
            reduce_type=self.reduce_type,
            preamble=self.preamble,
            map_expr=self.expressions["map_expr"],
            reduce_expr=self.expressions[self._combining],
            identity=self.expressions["identity"],
            post_map_expr=self.expressions["post_map_expr"],
            uses_index=self._uses_index,
        )

    def _kernels(self, generated: GeneratedKernel, operands: Sequence[Operand]) -> Kernels:
        """The kernels of a text by the end of their names, each compiled when it is asked for."""
        return lambda step: self._compiled(generated, f"{self.name}_{step}", operands)


def input_values(inputs: Sequence[Operand], plan: AxisPlan) -> list[Any]:
    """The arguments for the parameters of ``Inputs``."""
    return [*(operand.bound for operand in inputs), layout_value(plan.layout)]


def temporary(kernel: Kernel, name: str, count: int) -> Buffer:
    """Memory for `count` elements of what the kernel's parameter `name` points to."""
    parameter = next(p for p in kernel.signature.buffers if p.name == name)
    return Buffer(max(count, 1) * parameter.layout.bytes)


def chunks_of(count: int, size: int) -> int:
    """The number of chunks of `size`, at least one."""
    return max(math.ceil(count / size), 1)
