"""What ReductionKernel and ScanKernel have in common: parameters, arguments, temporary memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metalloid.compiler.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.axes import AxisPlan
from metalloid.kernels.axis_text import AXIS_NAMES
from metalloid.kernels.builder_arguments import (
    check_builder,
    common_device,
    operands_of,
    outputs_of,
)
from metalloid.kernels.builder_parameters import parse_parameters, resolve_types
from metalloid.kernels.builder_text import Argument, layout_value
from metalloid.kernels.generated_kernel import GeneratedKernel, compiled
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.metal_kernel_names import used_identifiers
from metalloid.kernels.operands import Operand
from metalloid.runtime.buffer import Buffer

Kernels = Callable[[str], Kernel]


class AxisKernel:
    """A kernel made of expressions that goes along axes; base of the two builders.

    Attributes
    ----------
    name : str
    source : str
        The MSL text of the latest call; empty before the first.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        expressions: dict[str, str],
        name: str,
        reduce_type: str | None,
        preamble: str,
        math_mode: MathMode,
    ) -> None:
        builder = type(self).__name__
        check_builder(builder, name, math_mode, preamble=preamble, **expressions)
        for what, text in expressions.items():
            if not text.strip():
                raise ArgumentError(f"[{name}] {what} is empty. Write an expression of MSL.")
        self.in_params = parse_parameters(name, "in_params", in_params, AXIS_NAMES)
        taken = (*AXIS_NAMES, *(parameter.name for parameter in self.in_params))
        self.out_params = parse_parameters(name, "out_params", out_params, taken)
        if not self.out_params or any(parameter.is_raw for parameter in self.out_params):
            raise ArgumentError(
                f"[{name}] out_params wants at least one output, and none raw: {out_params!r}."
            )
        self.name, self.preamble, self.expressions = name, preamble, expressions
        self.reduce_type = reduce_type or self.out_params[0].type
        self._math_mode: MathMode = math_mode
        self._uses_index = "i" in used_identifiers(expressions["map_expr"], preamble)
        self.source = ""

    def _arguments(
        self, args: Sequence[Any], axis: Any, out: Any
    ) -> tuple[list[Operand], list[Operand | None], dict[str, np.dtype[Any]], AxisPlan]:
        if out is not None:
            if len(args) != len(self.in_params):
                raise ArgumentError(f"[{self.name}] the outputs are given twice, and as out=.")
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        inputs, given = operands_of(self.name, self.in_params, self.out_params, args)
        parameters = (*self.in_params, *self.out_params)
        types = resolve_types(self.name, parameters, [*inputs, *given])
        plan = AxisPlan(self.name, self.in_params, inputs, axis)
        return inputs, given, types, plan

    def _outputs(
        self,
        inputs: Sequence[Operand],
        given: Sequence[Operand | None],
        shape: tuple[int, ...],
        types: dict[str, np.dtype[Any]],
    ) -> list[Operand]:
        values = [operand.value for operand in inputs]
        return outputs_of(self.name, self.out_params, given, shape, types, values)

    def _kernels(self, generated: GeneratedKernel, operands: Sequence[Operand]) -> Kernels:
        """The kernels of a text by the end of their names, each compiled when it is asked for."""
        device = common_device(operands)

        def kernel(step: str) -> Kernel:
            return compiled(generated, f"{self.name}_{step}", self._math_mode, device)

        self.source = generated.text
        return kernel

    def _texts(self, operands: Sequence[Operand]) -> tuple[Argument, ...]:
        """The arguments in their forms; all that are followed, by their strides."""
        forms = []
        for k, (parameter, operand) in enumerate(
            zip((*self.in_params, *self.out_params), operands, strict=True)
        ):
            form = "raw" if parameter.is_raw else "number" if operand.is_number else "strided"
            forms.append(Argument(parameter.name, parameter.type, form, k >= len(self.in_params)))
        return tuple(forms)

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(map(str, self.in_params)), ", ".join(map(str, self.out_params))
        return f"<{type(self).__name__} {self.name}({inputs}) -> {outputs}>"


def input_values(inputs: Sequence[Operand], plan: AxisPlan) -> list[Any]:
    """What the parameters of ``Inputs`` are given."""
    return [*(operand.bound for operand in inputs), layout_value(plan.layout)]


def temporary(kernel: Kernel, name: str, count: int) -> Buffer:
    """Memory for `count` elements of what the kernel's parameter `name` points to."""
    parameter = next(p for p in kernel.signature.buffers if p.name == name)
    return Buffer(max(count, 1) * parameter.layout.bytes)


def chunks_of(count: int, size: int) -> int:
    """How many chunks of `size` there are, and at least one."""
    return max(math.ceil(count / size), 1)
