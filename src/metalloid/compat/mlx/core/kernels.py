"""``mx.fast.metal_kernel``: a kernel of its body alone, on arrays of this ``mlx.core``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, created, wrap
from metalloid.compat.mlx.core.devices import cpu, gpu, is_available
from metalloid.compat.mlx.core.dtypes import Dtype
from metalloid.compat.mlx.core.tape import OPERATIONS, current
from metalloid.compat.mlx.kernel_arguments import (
    check_list,
    extents,
    math_mode,
    threadgroup_extents,
)


def metal_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str,
                 header: str = "", ensure_row_contiguous: bool = True,
                 atomic_outputs: bool = False,
                 compile_options: Mapping[str, str] | None = None,
                 ) -> Callable[..., list[array]]:  # fmt: skip
    """A kernel of its body alone; see `metalloid.metal_kernel`, and MLX's documentation.

    Raises
    ------
    ValueError
        If there is no output, or an option is unknown.
    """
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    definition = [name, list(input_names), list(output_names), source, header,
                  ensure_row_contiguous, atomic_outputs, compile_options]  # fmt: skip
    kernel = mtl.metal_kernel(
        name, list(input_names), list(output_names), source, header=header,
        ensure_row_contiguous=ensure_row_contiguous, atomic_outputs=atomic_outputs,
        math_mode=math_mode(compile_options),
    )  # fmt: skip

    def call(*, inputs: Sequence[Any], output_shapes: Sequence[Sequence[int]],
             output_dtypes: Sequence[Dtype], grid: Sequence[int], threadgroup: Sequence[int],
             template: Sequence[tuple[str, Any]] | None = None, init_value: float | None = None,
             verbose: bool = False, stream: Any = None) -> list[array]:  # fmt: skip
        """Run the kernel."""
        tape = current.tape
        if tape is not None and not tape.is_inside:
            named = {
                "inputs": list(inputs), "output_shapes": list(output_shapes),
                "output_dtypes": list(output_dtypes), "grid": grid, "threadgroup": threadgroup,
                "template": template, "init_value": init_value,
            }  # fmt: skip
            recorded: list[array] = tape.call(
                "kernels:launch", lambda _, **options: call(**options), (definition,), named
            )
            return recorded
        check_list("inputs", inputs, kernel.input_names)
        check_list("output_shapes", output_shapes, kernel.output_names)
        check_list("output_dtypes", output_dtypes, kernel.output_names)
        if stream is not None and getattr(stream, "device", stream) == cpu and is_available(gpu):
            raise ValueError("[metal_kernel] Only supports the GPU.")
        group = threadgroup_extents(threadgroup)
        try:
            results = kernel(
                inputs=[created(value) for value in inputs],
                output_shapes=[tuple(shape) for shape in output_shapes],
                output_dtypes=[_dtype(d) for d in output_dtypes],
                grid=extents("grid", grid), threadgroup=group, init_value=init_value,
                verbose=verbose,
                template=[(key, _template(value)) for key, value in template or ()],
            )  # fmt: skip
        except mtl.CompileError as error:
            raise RuntimeError(
                f"[metal::Device] Unable to build metal library from source\n{error}"
            ) from error
        return [wrap(result) for result in results]

    return call


def launch(definition: Sequence[Any], **options: Any) -> list[array]:
    """Run a kernel of a recorded function."""
    return metal_kernel(*definition)(**options)


OPERATIONS["kernels:launch"] = launch


def _dtype(value: Any) -> Any:
    if isinstance(value, Dtype):
        return value.numpy
    raise TypeError(f"__call__(): incompatible function arguments: {value!r} is not a dtype.")


def _template(value: Any) -> Any:
    if isinstance(value, Dtype):
        return value.numpy
    if isinstance(value, bool) or (isinstance(value, int) and -(2**31) <= value < 2**31):
        return value
    raise ValueError(
        "[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`."
    )
