"""The base of all builders: parameters, and the conversion of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.builders.builder_parameters import (
    BuilderParameter,
    parse_parameters,
    resolve_types,
)
from metalloid.kernels.generated_kernel import GeneratedKernel, compiled
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import resolve_bounds
from metalloid.kernels.metal_kernel_checks import check_function_name, check_math_mode
from metalloid.kernels.operands import Operand, new_output
from metalloid.runtime.arguments.argument_binder import describe
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.memory.buffer import Buffer

Types = Mapping[str, np.dtype[Any]]


class Builder:
    """A kernel that is written around expressions when it is called.

    Parameters
    ----------
    reserved : sequence of str
        Names that parameters cannot have.
    **texts
        What else is MSL source, by the name of its parameter.

    Attributes
    ----------
    name : str
    in_params, out_params : tuple of BuilderParameter
    preamble : str
    source : str
        The MSL source of the latest call; empty before the first.
    """

    def __init__(
        self,
        name: str,
        in_params: str,
        out_params: str,
        reserved: Sequence[str],
        math_mode: MathMode,
        bounds: Bounds | None,
        preamble: str,
        **texts: str,
    ) -> None:
        builder = type(self).__name__
        check_function_name(name, builder)
        check_math_mode(math_mode, builder)
        for what, text in (*texts.items(), ("preamble", preamble)):
            if not isinstance(text, str):
                raise ArgumentError(f"[{builder}] {what} expects MSL source, got {describe(text)}.")
        self.in_params = parse_parameters(name, "in_params", in_params, reserved)
        taken = (*reserved, *(parameter.name for parameter in self.in_params))
        self.out_params = parse_parameters(name, "out_params", out_params, taken)
        self.name, self.preamble, self.source = name, preamble, ""
        self._math_mode: MathMode = math_mode
        self._bounds = resolve_bounds(bounds, builder)

    @property
    def _parameters(self) -> tuple[BuilderParameter, ...]:
        return (*self.in_params, *self.out_params)

    def _operands(
        self, args: Sequence[Any]
    ) -> tuple[list[Operand], list[Operand | None], dict[str, np.dtype[Any]]]:
        """The inputs, the outputs that the caller gave (all or none), and the types.

        Raises
        ------
        ArgumentError
            For another number of arguments, values that are neither arrays nor numbers, and types
            that do not go together.
        """
        ins, outs = self.in_params, self.out_params
        if len(args) not in (len(ins), len(ins) + len(outs)):
            listing = ", ".join(map(str, ins)) or "no inputs"
            raise ArgumentError(
                f"[{self.name}] expects {len(ins)} arguments ({listing}), or {len(outs)} more "
                f"({', '.join(map(str, outs))}) for the outputs; got {len(args)}."
            )
        inputs = [
            Operand(f"[{self.name}] {parameter.name!r}", value, False, parameter.is_raw)
            for parameter, value in zip(ins, args, strict=False)
        ]
        for parameter, operand in zip(ins, inputs, strict=True):
            if parameter.is_raw and operand.is_number:
                raise ArgumentError(
                    f"{operand.label} is raw and expects an array, got {operand.value!r}."
                )
        given: list[Operand | None] = [
            Operand(f"[{self.name}] {parameter.name!r}", value, True, parameter.is_raw)
            for parameter, value in zip(outs, args[len(ins) :], strict=False)
        ]
        given = given or [None] * len(outs)
        return inputs, given, resolve_types(self.name, self._parameters, [*inputs, *given])

    def _outputs(
        self,
        inputs: Sequence[Operand],
        given: Sequence[Operand | None],
        shape: tuple[int, ...],
        types: Types,
    ) -> list[Operand]:
        """The outputs, made where there are none.

        Raises
        ------
        ArgumentError
            If an output that is followed element by element has another shape.
        """
        as_buffer = any(isinstance(operand.memory, Buffer) for operand in inputs)
        outputs = []
        for parameter, operand in zip(self.out_params, given, strict=True):
            if operand is None:
                output = new_output(shape, types[parameter.type], as_buffer)
                operand = Operand(
                    f"[{self.name}] {parameter.name!r}", output, True, parameter.is_raw
                )
            elif operand.shape != shape and not parameter.is_raw:
                raise ArgumentError(
                    f"{operand.label} has the shape {operand.shape}; the result has {shape}."
                )
            outputs.append(operand)
        return outputs

    def _compiled(
        self, generated: GeneratedKernel, function: str, operands: Sequence[Operand]
    ) -> Kernel:
        """A kernel of a text, which becomes `source`."""
        self.source = generated.text
        return compiled(
            generated, function, self._math_mode, self._bounds, _common_device(operands)
        )

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(map(str, self.in_params)), ", ".join(map(str, self.out_params))
        return f"<{type(self).__name__} {self.name}({inputs}) -> {outputs}>"


def result_of(outputs: Sequence[Operand], inputs: Sequence[Operand]) -> Any:
    """The result of a call: the one output, or a tuple of all; lazy arrays if an input is one."""
    lazy = next((i.value for i in inputs if hasattr(i.value, "__metalloid_wrap__")), None)
    values = tuple(
        output.value if lazy is None or not isinstance(output.value, np.ndarray)
        else lazy.__metalloid_wrap__(output.value)
        for output in outputs
    )  # fmt: skip
    return values[0] if len(values) == 1 else values


def _common_device(operands: Sequence[Operand]) -> Device:
    """The device of the Buffers among the operands; the default device without any."""
    for operand in operands:
        if isinstance(operand.memory, Buffer):
            return operand.memory.device
    return get_device(None)
