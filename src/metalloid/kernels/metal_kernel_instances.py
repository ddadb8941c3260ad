"""The kernel that a call of `metal_kernel` launches, with all its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.errors import CompileError
from metalloid.kernels.generated_kernel import GeneratedKernel
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.metal_kernel import MetalKernel
from metalloid.kernels.metal_kernel_checks import launch_sizes
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.program import Size


class MetalKernelInstance:
    """The kernel of a call, compiled for the types of its arguments.

    Parameters
    ----------
    definition : MetalKernel
    inputs : sequence
        Values; only types, shapes and numbers matter for the kernel.
    results : sequence of (dtype, shape)
    options : mapping
        ``"grid"``, ``"threadgroup"`` and ``"template"`` of the call.

    Attributes
    ----------
    kernel : Kernel
    arguments : list
        In the order of the kernel's parameters. Those of outputs are uninitialised memory.
    threads, group : tuple of int
        The size of the launch.
    """

    kernel: Kernel
    threads: Size
    group: Size | None

    def __init__(
        self, definition: MetalKernel, inputs: Sequence[Any],
        results: Sequence[tuple[np.dtype[Any], tuple[int, ...]]], options: dict[str, Any],
        device: Device,
    ) -> None:  # fmt: skip
        memories = definition._inputs(inputs, device)
        outputs = {
            name: np.empty(shape, dtype)
            for name, (dtype, shape) in zip(definition.output_names, results, strict=True)
        }
        result = definition._compiled(memories, outputs, options["template"], device)
        self.kernel, self._generated = result.kernel, result.generated
        self.arguments = definition._values(result.parameters, memories, outputs)
        self.threads, self.group = launch_sizes(
            definition.name, options["grid"], options["threadgroup"], self.kernel.max_group_size
        )

    def at_user_lines(self, error: CompileError) -> CompileError:
        """An error of the kernel's text with its lines counted in the user's header and body."""
        generated: GeneratedKernel = self._generated
        return generated.at_user_lines(error)
