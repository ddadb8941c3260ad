"""``metal_kernel``: a kernel of which only the body is written."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from metalloid.compiler.target import MATH_MODES, MathMode
from metalloid.errors import ArgumentError, CompileError
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import library
from metalloid.kernels.metal_kernel_memory import (
    ATOMIC_TYPES,
    MSL_TYPES,
    InputMemory,
    allocate,
    dtype_of,
)
from metalloid.kernels.metal_kernel_names import check_function_name, check_names, used_identifiers
from metalloid.kernels.metal_kernel_text import (
    GeneratedKernel,
    InputText,
    OutputText,
    TemplateArgument,
    generate,
)
from metalloid.runtime.buffer import Buffer
from metalloid.runtime.device import Device, Size
from metalloid.runtime.registry import get_device
from metalloid.runtime.slots import describe

#: Inputs of fewer elements are in ``constant`` memory.
_ELEMENTS_OF_DEVICE_MEMORY = 8
_MAX_EXTENT = 2**32 - 1


class MetalKernel:
    """A kernel made of its body; see `metal_kernel`.

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
    ) -> None:
        check_function_name(name)
        self.name, self.source, self.header = name, source, header
        self.input_names = check_names("input_names", input_names)
        self.output_names = check_names("output_names", output_names)
        if not self.output_names:
            raise ArgumentError(
                "[metal_kernel] output_names is empty: nothing of what the kernel does would be "
                "seen. Name an output."
            )
        for text, value in (("source", source), ("header", header)):
            if not isinstance(value, str):
                raise ArgumentError(f"[metal_kernel] {text} wants MSL text, got {describe(value)}.")
        if "kernel" in used_identifiers(source):
            raise ArgumentError(
                "[metal_kernel] source is the body of a kernel only, without its head and braces. "
                "For whole functions there is metalloid.library."
            )
        if math_mode not in MATH_MODES:
            raise ArgumentError(
                f"[metal_kernel] math_mode is one of {', '.join(map(repr, MATH_MODES))}, "
                f"not {math_mode!r}."
            )
        self._row_contiguous, self._atomic = bool(ensure_row_contiguous), bool(atomic_outputs)
        self._math_mode: MathMode = math_mode
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
            Print the generated MSL text.
        device : str or Device, optional
            Where to run; the default device without.

        Returns
        -------
        list
            An item for each of `output_names`: a new, row-contiguous NumPy array, or the caller's
            own value if it was updated in place.

        Raises
        ------
        ArgumentError
            If anything does not fit; nothing was run.
        CompileError
            With the lines of the body and of the header.
        KernelFault
            If the kernel failed.
        """
        where = get_device(device)
        memories = self._inputs(inputs, where)
        dtypes = self._output_dtypes(output_shapes, output_dtypes)
        generated = self._generate(memories, dtypes, self._template(template))
        outputs = {
            name: allocate(f"[{self.name}] output {name!r}", shape, dtype, init_value)
            for name, shape, dtype in zip(self._new_names, output_shapes, dtypes, strict=True)
        }
        if verbose:
            print(f"Generated source code for `{self.name}`:\n```\n{generated.own_text}\n```")
        kernel = _compile(generated, self._math_mode, where)
        threads, group = self._sizes(grid, threadgroup, kernel)
        values: dict[str, Any] = {}
        for name, memory in zip(self.input_names, memories, strict=True):
            values |= memory.companions(name)
        values |= {n: m.memory for n, m in zip(self.input_names, memories, strict=True)} | outputs
        arguments = [values[parameter.name] for parameter in kernel.signature.buffers]
        kernel(*arguments, threads=threads, group_size=group, wait=True)
        results: dict[str, Any] = {**outputs}
        for name, memory in zip(self.input_names, memories, strict=True):
            memory.write_back()
            results[name] = memory.value
        return [results[name] for name in self.output_names]

    def _inputs(self, inputs: Sequence[Any], device: Device) -> list[InputMemory]:
        values = self._listed("inputs", inputs, self.input_names)
        memories = []
        for name, value in zip(self.input_names, values, strict=True):
            label = f"[{self.name}] input {name!r}"
            if isinstance(value, Buffer) and value.device is not device:
                raise ArgumentError(
                    f"{label} is {describe(value)} on {value.device.name}, the kernel runs on "
                    f"{device.name}. Pass device={value.device.name!r}, or an array."
                )
            is_written = name in self.output_names
            memories.append(InputMemory(label, value, self._row_contiguous, is_written))
            if is_written:
                self._check_atomic(name, memories[-1].dtype)
        return memories

    def _output_dtypes(self, shapes: Any, dtypes: Any) -> list[np.dtype[Any]]:
        self._listed("output_shapes", shapes, self._new_names)
        found = []
        wanted = self._listed("output_dtypes", dtypes, self._new_names)
        for name, value in zip(self._new_names, wanted, strict=True):
            dtype = dtype_of(value)
            if dtype is None:
                raise ArgumentError(
                    f"[{self.name}] output {name!r} wants a dtype of MSL such as numpy.float32, "
                    f"got {value!r}."
                )
            self._check_atomic(name, dtype)
            found.append(dtype)
        return found

    def _check_atomic(self, name: str, dtype: np.dtype[Any]) -> None:
        if self._atomic and MSL_TYPES[dtype.name] not in ATOMIC_TYPES:
            raise ArgumentError(
                f"[{self.name}] output {name!r} is of {dtype}, which has no atomic operations; "
                f"atomic_outputs=True wants one of {', '.join(sorted(ATOMIC_TYPES))}."
            )

    def _template(self, template: Any) -> tuple[TemplateArgument, ...]:
        try:
            pairs = [(name, value) for name, value in template]
        except (TypeError, ValueError):
            raise ArgumentError(
                f"[{self.name}] template wants pairs of a name and a value, "
                f'[("T", numpy.float32)], got {template!r}.'
            ) from None
        taken = (*self.input_names, *self.output_names)
        check_names("template", [name for name, _ in pairs], self.name, taken)
        return tuple(self._template_argument(name, value) for name, value in pairs)

    def _template_argument(self, name: str, value: Any) -> TemplateArgument:
        if isinstance(value, bool | np.bool_):
            return TemplateArgument("bool", name, str(int(value)))
        if isinstance(value, int | np.integer) and -(2**31) <= value < 2**31:
            return TemplateArgument("int", name, str(int(value)))
        dtype = dtype_of(value)
        if dtype is None:
            raise ArgumentError(
                f"[{self.name}] template parameter {name!r} wants a dtype of MSL such as "
                f"numpy.float32, an int of 32 bits or a bool, got {value!r}."
            )
        return TemplateArgument("typename", name, MSL_TYPES[dtype.name])

    def _generate(
        self,
        memories: list[InputMemory],
        dtypes: list[np.dtype[Any]],
        template: tuple[TemplateArgument, ...],
    ) -> GeneratedKernel:
        inputs = tuple(
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
        outputs = tuple(
            OutputText(name, MSL_TYPES[dtype.name], self._atomic)
            for name, dtype in zip(self._new_names, dtypes, strict=True)
        )
        return generate(self.name, inputs, outputs, template, self.source, self.header)

    def _sizes(self, grid: Any, threadgroup: Any, kernel: Kernel) -> tuple[Size, Size | None]:
        threads = self._extents("grid", grid, 0)
        if threadgroup is None:
            return threads, None
        x, y, z = self._extents("threadgroup", threadgroup, 1)
        if x * y * z > kernel.max_group_size:
            raise ArgumentError(
                f"[{self.name}] threadgroup {(x, y, z)} has {x * y * z} threads; "
                f"a threadgroup of this kernel has at most {kernel.max_group_size}."
            )
        most_x, most_y, most_z = (max(extent, 1) for extent in threads)
        return threads, (min(x, most_x), min(y, most_y), min(z, most_z))

    def _extents(self, what: str, value: Any, least: int) -> Size:
        extents: tuple[int, ...] = ()
        with contextlib.suppress(TypeError):
            listed = value if isinstance(value, Iterable) else (value,)
            extents = tuple(operator.index(extent) for extent in listed)
        if not 1 <= len(extents) <= 3 or not all(least <= n <= _MAX_EXTENT for n in extents):
            raise ArgumentError(
                f"[{self.name}] {what} wants 1 to 3 numbers of threads, each at least {least} "
                f"and at most {_MAX_EXTENT}, got {value!r}."
            )
        x, y, z = (*extents, 1, 1)[:3]
        return (x, y, z)

    def _listed(self, what: str, values: Any, names: tuple[str, ...]) -> Sequence[Any]:
        """The values, one for each name, if that is what they are."""
        shown = ", ".join(names) or "none"
        if not isinstance(values, list | tuple):
            raise ArgumentError(
                f"[{self.name}] {what} wants a list with a value for each of: {shown}; "
                f"got {describe(values)}."
            )
        if len(values) != len(names):
            raise ArgumentError(
                f"[{self.name}] {what} wants {len(names)} values (for {shown}), got {len(values)}."
            )
        return values

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"<MetalKernel {self.name}({inputs}) -> {outputs}>"


@functools.lru_cache(maxsize=256)
def _compile(generated: GeneratedKernel, math_mode: MathMode, device: Device) -> Kernel:
    """The kernel of a text; the text decides, so that equal names never meet."""
    try:
        lib = library(generated.text, math_mode=math_mode, device=device)
        return lib.function(generated.function)
    except CompileError as error:
        raise generated.in_users_places(error) from None


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
) -> MetalKernel:
    """Make a kernel of its body alone; the signature follows from each call's arguments.

    Parameters
    ----------
    name : str
        Part of the kernel's name in its text, and in messages.
    input_names : sequence of str
        The names by which the body knows its inputs.
    output_names : sequence of str
        Likewise for its outputs. A name that is an input, too, is updated in place.
    source : str
        The body, without braces.
    header : str, optional
        What the body needs in front of the kernel: functions, types, macros, includes.
    ensure_row_contiguous : bool, optional
        Whether inputs that are not row-contiguous are copied first (default). Without, the body
        must follow their strides.
    atomic_outputs : bool, optional
        Declare outputs as ``device atomic<T>*``.
    math_mode : {"safe", "relaxed", "fast"}, optional
        As for `library`.

    Returns
    -------
    MetalKernel
        Call it with the inputs and the size of the grid.

    Raises
    ------
    ArgumentError
        If a name cannot be one. What the text is worth shows in the first call.

    Notes
    -----
    The kernel gets, in this order,

    - ``const device T* x`` for each input, ``const constant T* x`` if it has fewer than 8
      elements and ``const constant T& x`` if it has no axes; ``device T* x`` if it is updated;
    - ``x_shape``, ``x_strides`` (in elements) and ``x_ndim`` of an input with axes, each if the
      body uses it;
    - ``device T* y`` for each other output;
    - the ids that the body uses: ``thread_position_in_grid`` and all others of Metal.

    A name is used if it is a word of the program: comments and strings do not count, macros of the
    header do. ``metal_stdlib``, ``using namespace metal``, ``elem_to_loc``, ``ceildiv``,
    ``Limits``, ``complex64_t`` and their like (``metal_kernel_utils.metal``) are there already.

    Without `ensure_row_contiguous` an input still is copied if its memory does not start at its
    first element (a negative stride) or its strides are no whole elements.

    The form is that of MLX's ``mlx.core.fast.metal_kernel``.

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
        name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs,
        math_mode,
    )  # fmt: skip
