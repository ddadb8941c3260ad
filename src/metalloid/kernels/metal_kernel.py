"""``metal_kernel``: a kernel of which only the body is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.bound_calls import (
    BoundCall,
    BoundCalls,
    ContiguousArguments,
    KnownSizes,
    Result,
)
from metalloid.kernels.derivatives import DefinesVjp
from metalloid.kernels.generated_kernel import GeneratedKernel, compiled
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import resolve_bounds
from metalloid.kernels.metal_kernel_checks import (
    check_atomic,
    check_function_name,
    check_math_mode,
    check_names,
    check_texts,
    launch_sizes,
    listed,
    output_dtype,
    template_arguments,
)
from metalloid.kernels.metal_kernel_memory import (
    InputMemory,
    NewMemory,
    allocate,
    shared_memory_of,
    signature_type,
    uninitialised,
)
from metalloid.kernels.metal_kernel_text import (
    InputText,
    OutputText,
    TemplateArgument,
    generate,
)
from metalloid.runtime.arguments.argument_binder import describe
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.launch.program import Size
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

#: Inputs of fewer elements are in ``constant`` memory.
_ELEMENTS_OF_DEVICE_MEMORY = 8


class _CompiledKernel(NamedTuple):
    """A compiled kernel, the names of its buffers in order, and its text."""

    kernel: Kernel
    parameters: tuple[str, ...]
    generated: GeneratedKernel


class MetalKernel(DefinesVjp):
    """A kernel defined by its body; see `metal_kernel`.

    Attributes
    ----------
    name : str
    input_names, output_names : tuple of str
    source, header : str
    """

    def __init__(
        self,
        name: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        source: str,
        header: str = "",
        ensure_row_contiguous: bool = True,
        atomic_outputs: bool = False,
        math_mode: MathMode = "safe",
        bounds: Bounds | None = None,
    ) -> None:
        check_function_name(name)
        self.name, self.source, self.header = name, source, header
        self.input_names = check_names("input_names", input_names)
        self.output_names = check_names("output_names", output_names)
        if not self.output_names:
            raise ArgumentError(
                "[metal_kernel] output_names is empty: the kernel would have no result. "
                "Name an output."
            )
        check_texts(source, header)
        check_math_mode(math_mode)
        self._row_contiguous, self._atomic = bool(ensure_row_contiguous), bool(atomic_outputs)
        self._math_mode: MathMode = math_mode
        self._bounds = resolve_bounds(bounds, "metal_kernel")
        self._kernels: dict[Any, _CompiledKernel] = {}
        self._bound = BoundCalls()
        self._sizes = KnownSizes()
        self._new_names = tuple(n for n in self.output_names if n not in self.input_names)

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        grid: int | Sequence[int],
        threadgroup: int | Sequence[int] | None = None,
        output_shapes: Sequence[Sequence[int]] = (),
        output_dtypes: Sequence[Any] = (),
        template: Sequence[tuple[str, Any]] = (),
        init_value: Any = None,
        verbose: bool = False,
        device: str | Device | None = None,
    ) -> list[Any]:
        """Run the kernel once per thread of the grid, and wait for it.

        Parameters
        ----------
        inputs : sequence
            A value for each of `input_names`: arrays (NumPy, `Buffer`, DLPack, buffer protocol)
            and numbers.
        grid : int or sequence of 1 to 3 ints
            Number of *threads*, (x, y, z); 0 runs nothing.
        threadgroup : int or sequence of 1 to 3 ints, optional
            Threads of a threadgroup, cut down to the grid's size; the device chooses without.
        output_shapes : sequence of shapes
            For each of `output_names` that is not an input, too.
        output_dtypes : sequence
            Likewise; NumPy dtypes or scalar types (``numpy.float32``, ``"float32"``).
        template : sequence of (str, value)
            Template parameters in order: a dtype for a ``typename``, an ``int`` or a ``bool``.
        init_value : number, optional
            What new outputs are filled with before the launch; without it they are uninitialised.
        verbose : bool, optional
            Print the generated MSL source.
        device : str or Device, optional
            Where to run; without, the device of the first `Array`, or the default device.

        Returns
        -------
        list
            An item for each of `output_names`: a new, row-contiguous NumPy array, or the caller's
            own value if it was updated in place. If an input is a metalloid `Array`, so are the
            new ones, and the kernel runs when they are needed.

        Raises
        ------
        ArgumentError
            If anything does not fit; nothing was run.
        CompileError
            With the lines of the body and of the header.
        KernelFault
            If the kernel failed.
        """
        lazy = None
        for value in inputs:
            if hasattr(value, "__metalloid_call__"):
                lazy = value
                break
        if lazy is None or self._new_names != self.output_names:
            return self.run_eagerly(
                inputs, grid, threadgroup, output_shapes, output_dtypes, template, init_value,
                verbose, device,
            )  # fmt: skip
        options = {
            "grid": grid, "threadgroup": threadgroup, "output_shapes": output_shapes,
            "output_dtypes": output_dtypes, "template": template, "init_value": init_value,
            "verbose": verbose,
        }  # fmt: skip
        sizes = self._sizes.find(grid, threadgroup, output_shapes, output_dtypes, template)
        result_types = None if sizes is None else sizes.results
        if result_types is None:
            specs = self._output_specs(output_shapes, output_dtypes)
            result_types = [(dtype, tuple(shape)) for _, shape, dtype in specs]
            if sizes is not None:
                sizes.results = result_types
        on = lazy.device if device is None else get_device(device)
        is_like_others = init_value is None and not verbose
        lazy_results: list[Any] = lazy.__metalloid_call__(
            self, inputs, options, result_types, on, sizes if is_like_others else None
        )
        return lazy_results

    def run_eagerly(
        self,
        inputs: Sequence[Any],
        grid: int | Sequence[int],
        threadgroup: int | Sequence[int] | None,
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        template: Sequence[tuple[str, Any]] = (),
        init_value: Any = None,
        verbose: bool = False,
        device: str | Device | None = None,
        new: NewMemory = np.empty,
    ) -> list[Any]:
        """A call with inputs of which none is a metalloid `Array`; `new` makes the outputs."""
        where = get_device(device)
        key: Any = None
        is_usual = type(inputs) in (list, tuple) and init_value is None and not verbose
        if is_usual and not settings.check and self._new_names == self.output_names:
            known = ContiguousArguments.of(inputs, where)
            if known is not None and len(known.types) == 2 * len(inputs):  # without numbers
                sizes = self._sizes.find(grid, threadgroup, output_shapes, output_dtypes, template)
                key = None if sizes is None else (where, sizes, *known.types)
                bound = self._bound.find(key)
                finished = None if bound is None else _run(bound, known.values, new)
                if finished is not None:
                    return finished
        memories = self._inputs(inputs, where)
        outputs = self._new_outputs(output_shapes, output_dtypes, init_value, new)
        result = self._compiled(memories, outputs, template, where)
        if verbose:
            text = result.generated.own_text
            print(f"Generated source code for `{self.name}`:\n```\n{text}\n```")
        kernel = result.kernel
        threads, group = launch_sizes(self.name, grid, threadgroup, kernel.max_group_size)
        values = self._values(result.parameters, memories, outputs)
        with uninitialised(result.parameters, values, outputs, where, init_value) as given:
            kernel(*given, threads=threads, group_size=group, wait=True)
        if key is not None:
            bound = self._bound_call(kernel, threads, group, result.parameters, values, outputs)
            self._bound.remember(key, bound)
        results: dict[str, Any] = {**outputs}
        for name, memory in zip(self.input_names, memories, strict=True):
            memory.write_back()
            results[name] = memory.value
        return [results[name] for name in self.output_names]

    def bound_call(self, device: Device, sizes: Any, types: Sequence[Any]) -> BoundCall | None:
        """An earlier call on inputs of these dtypes and shapes, of the same sizes."""
        return self._bound.find((device, sizes, *types))

    def _bound_call(
        self, kernel: Kernel, threads: Size, group: Size | None, parameters: tuple[str, ...],
        values: list[Any], outputs: dict[str, np.ndarray],
    ) -> BoundCall:  # fmt: skip
        """The launch with these values of the kernel's parameters, for later calls."""
        arrays = (*self.input_names, *outputs)
        companions = [name for name in parameters if name not in arrays]
        names = [*arrays, *companions]
        given = dict(zip(parameters, values, strict=True))
        order = tuple(names.index(name) for name in parameters)
        return BoundCall(
            kernel, threads, group,
            results=tuple(map(Result.like, outputs.values())),
            order=None if order == tuple(range(len(names))) else order,
            companions=tuple(given[name] for name in companions),
        )  # fmt: skip

    def _values(
        self, names: tuple[str, ...], memories: list[InputMemory], outputs: dict[str, np.ndarray]
    ) -> list[Any]:
        """The arguments of the kernel: arrays, and the shapes and strides that it uses."""
        values: dict[str, Any] = {}
        if len(names) > len(memories) + len(outputs):
            for name, memory in zip(self.input_names, memories, strict=True):
                values |= memory.companions(name)
        values |= {n: m.memory for n, m in zip(self.input_names, memories, strict=True)} | outputs
        return [values[name] for name in names]

    def _inputs(self, inputs: Sequence[Any], device: Device) -> list[InputMemory]:
        memories = []
        values = listed(self.name, "inputs", inputs, self.input_names)
        for name, value in zip(self.input_names, values, strict=True):
            label = f"[{self.name}] input {name!r}"
            if isinstance(value, Buffer) and value.device is not device:
                raise ArgumentError(
                    f"{label} is {describe(value)} on {value.device.name}, the kernel runs on "
                    f"{device.name}. Pass device={value.device.name!r}, or an array."
                )
            is_written = name in self.output_names
            value = shared_memory_of(label, value, device, is_written)
            memory = InputMemory(label, value, self._row_contiguous, is_written)
            if is_written and self._atomic:
                check_atomic(label, memory.dtype)
            memories.append(memory)
        return memories

    def _new_outputs(
        self, shapes: Any, dtypes: Any, initial: Any, new: NewMemory
    ) -> dict[str, np.ndarray]:
        specs = zip(self._new_names, self._output_specs(shapes, dtypes), strict=True)
        outputs = {}
        for name, (label, shape, dtype) in specs:
            if self._atomic:
                check_atomic(label, dtype)
            outputs[name] = allocate(label, shape, dtype, initial, new)
        return outputs

    def _output_specs(self, shapes: Any, dtypes: Any) -> Iterator[tuple[str, Any, np.dtype[Any]]]:
        """By new output: its label in messages, the shape as it was passed, and the dtype."""
        shapes = listed(self.name, "output_shapes", shapes, self._new_names)
        dtypes = listed(self.name, "output_dtypes", dtypes, self._new_names)
        for name, shape, dtype in zip(self._new_names, shapes, dtypes, strict=True):
            label = f"[{self.name}] output {name!r}"
            yield label, shape, output_dtype(label, dtype)

    def _compiled(
        self, memories: list[InputMemory], outputs: dict[str, np.ndarray], template: Any,
        device: Device,
    ) -> _CompiledKernel:  # fmt: skip
        """The kernel for arguments of these types, made when they are met first."""
        taken = (*self.input_names, *self.output_names)
        arguments = template_arguments(self.name, template, taken) if template else ()
        key = (
            device, arguments,
            *[(m.type, not m.shape, m.size < _ELEMENTS_OF_DEVICE_MEMORY) for m in memories],
            *[output.dtype for output in outputs.values()],
        )  # fmt: skip
        if (result := self._kernels.get(key)) is None:
            generated = self._generate(memories, outputs, arguments)
            kernel = compiled(generated, generated.function, self._math_mode, self._bounds, device)
            names = tuple(p.name for p in kernel.signature.buffers)
            result = self._kernels[key] = _CompiledKernel(kernel, names, generated)
        return result

    def _generate(
        self, memories: list[InputMemory], outputs: dict[str, np.ndarray],
        arguments: tuple[TemplateArgument, ...],
    ) -> GeneratedKernel:  # fmt: skip
        input_texts = tuple(
            InputText(
                name,
                memory.type,
                is_scalar=not memory.shape,
                is_small=memory.size < _ELEMENTS_OF_DEVICE_MEMORY,
                is_written=name in self.output_names,
                is_atomic=self._atomic,
            )
            for name, memory in zip(self.input_names, memories, strict=True)
        )
        output_texts = tuple(
            OutputText(name, signature_type(output.dtype), self._atomic)
            for name, output in outputs.items()
        )
        return generate(self.name, input_texts, output_texts, arguments, self.source, self.header)

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"<MetalKernel {self.name}({inputs}) -> {outputs}>"


def _run(bound: BoundCall, inputs: list[Any], new: NewMemory) -> list[Any] | None:
    """Run an earlier call on new outputs; None if there is no memory for them."""
    try:
        outputs = bound.new_outputs(new)
    except (MemoryError, ValueError):
        return None
    bound.run(inputs, outputs)
    return outputs


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    *,
    math_mode: MathMode = "safe",
    bounds: Bounds | None = None,
) -> MetalKernel:
    """Create a kernel from its body; the signature is derived from the arguments of each call.

    Parameters
    ----------
    name : str
        Part of the kernel's name in its text and in messages.
    input_names : sequence of str
        Names of the inputs in the body.
    output_names : sequence of str
        Names of the outputs. An array whose name is also an input is updated in place.
    source : str
        The body, without braces.
    header : str, optional
        MSL before the kernel: functions, types, macros, includes.
    ensure_row_contiguous : bool, optional
        Whether inputs that are not row-contiguous are copied first (default). Otherwise the body
        must use their strides.
    atomic_outputs : bool, optional
        Declare outputs as ``device atomic<T>*``.
    math_mode : {"safe", "relaxed", "fast"}, optional
    bounds : {"checked", "unchecked"}, optional
        As for `library`.

    Returns
    -------
    MetalKernel
        Call it with the inputs and the size of the grid.

    Raises
    ------
    ArgumentError
        If a name is not an identifier. The text is compiled by the first call.

    Notes
    -----
    The kernel gets, in this order,

    - ``const device T* x`` for each input, ``const constant T* x`` if it has fewer than 8
      elements and ``const constant T& x`` if it has no axes; ``device T* x`` if it is updated;
    - ``x_shape``, ``x_strides`` (in elements) and ``x_ndim`` of an input with axes, each if the
      body uses it;
    - ``device T* y`` for each other output;
    - the ids that the body uses: ``thread_position_in_grid`` and all others of Metal.

    A name is used if it is a token of the program; comments and strings do not count, macros of the
    header do. ``metal_stdlib``, ``using namespace metal``, ``elem_to_loc``, ``ceildiv``,
    ``Limits``, ``complex64_t`` and similar names (``metal_kernel_utils.metal``) are predefined.

    Without `ensure_row_contiguous` an input is still copied if its memory does not start at its
    first element (a negative stride), or its strides are not multiples of the element size.

    The interface is that of MLX's ``mlx.core.fast.metal_kernel``.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> kernel = mtl.metal_kernel("myexp", ["inp"], ["out"], '''
    ...     uint elem = thread_position_in_grid.x;
    ...     T tmp = inp[elem];
    ...     out[elem] = metal::exp(tmp);
    ... ''')
    >>> x = np.array([[0, 1], [2, 3]], np.float16)
    >>> kernel(inputs=[x], template=[("T", np.float32)], grid=(x.size, 1, 1),
    ...        threadgroup=(256, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])
    [array([[ 1.   ,  2.719],
           [ 7.39 , 20.08 ]], dtype=float16)]
    """
    return MetalKernel(
        name=name,
        input_names=input_names,
        output_names=output_names,
        source=source,
        header=header,
        ensure_row_contiguous=ensure_row_contiguous,
        atomic_outputs=atomic_outputs,
        math_mode=math_mode,
        bounds=bounds,
    )
