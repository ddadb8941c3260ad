"""What builders and their calls are given, checked: what all builders have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.kernels.builder_parameters import BuilderParameter
from metalloid.kernels.metal_kernel_checks import check_function_name, check_math_mode
from metalloid.kernels.operands import Operand, new_output
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.device import Device
from metalloid.runtime.registry import get_device
from metalloid.runtime.slot import describe


def check_builder(builder: str, name: Any, math_mode: Any, **texts: Any) -> None:
    """Raise ArgumentError if a builder's name, math mode or texts cannot be that."""
    check_function_name(name, builder)
    check_math_mode(math_mode, builder)
    for what, text in texts.items():
        if not isinstance(text, str):
            raise ArgumentError(f"[{builder}] {what} wants MSL text, got {describe(text)}.")


def operands_of(
    where: str,
    in_params: Sequence[BuilderParameter],
    out_params: Sequence[BuilderParameter],
    args: Sequence[Any],
) -> tuple[list[Operand], list[Operand | None]]:
    """The inputs, and the outputs that the caller gave (all or none).

    Raises
    ------
    ArgumentError
        For another number of arguments, or values that are neither arrays nor numbers.
    """
    if len(args) not in (len(in_params), len(in_params) + len(out_params)):
        wanted = ", ".join(map(str, in_params)) or "no inputs"
        raise ArgumentError(
            f"[{where}] wants {len(in_params)} arguments ({wanted}), or {len(out_params)} more "
            f"({', '.join(map(str, out_params))}) for the outputs; got {len(args)}."
        )
    inputs = [
        Operand(f"[{where}] {parameter.name!r}", value, False, parameter.is_raw)
        for parameter, value in zip(in_params, args, strict=False)
    ]
    for parameter, operand in zip(in_params, inputs, strict=True):
        if parameter.is_raw and operand.is_number:
            raise ArgumentError(
                f"{operand.label} is raw and wants an array, got {operand.value!r}."
            )
    given: list[Operand | None] = [
        Operand(f"[{where}] {parameter.name!r}", value, True, parameter.is_raw)
        for parameter, value in zip(out_params, args[len(in_params) :], strict=False)
    ]
    return inputs, given or [None] * len(out_params)


def outputs_of(
    where: str,
    out_params: Sequence[BuilderParameter],
    given: Sequence[Operand | None],
    shape: tuple[int, ...],
    types: Mapping[str, np.dtype[Any]],
    args: Sequence[Any],
) -> list[Operand]:
    """The outputs, made where there are none.

    Raises
    ------
    ArgumentError
        If an output that is followed element by element has another shape.
    """
    as_buffer = any(isinstance(value, Buffer) for value in args)
    outputs = []
    for parameter, operand in zip(out_params, given, strict=True):
        if operand is None:
            made = new_output(shape, types[parameter.type], as_buffer)
            operand = Operand(f"[{where}] {parameter.name!r}", made, True, parameter.is_raw)
        elif operand.shape != shape and not parameter.is_raw:
            raise ArgumentError(
                f"{operand.label} has the shape {operand.shape}; the result has {shape}."
            )
        outputs.append(operand)
    return outputs


def result_of(outputs: Sequence[Operand]) -> Any:
    """What a call returns: the one output, or a tuple of all."""
    values = tuple(output.value for output in outputs)
    return values[0] if len(values) == 1 else values


def common_device(operands: Sequence[Operand]) -> Device:
    """The device of the Buffers among the operands; the default device without any."""
    for operand in operands:
        if isinstance(operand.value, Buffer):
            return operand.value.device
    return get_device(None)
