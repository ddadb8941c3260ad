"""MLX's ``mx.fast.metal_kernel`` where there is no Metal: the same call, on any device of ours.

    from metalloid.compat.mlx import metal_kernel  # for mx.fast.metal_kernel
    # or, before an unchanged program:
    import metalloid.compat.mlx as compat; compat.patch()

Both dialects are taken: lists, as today, and dictionaries, as in MLX 0.17.0 to 0.17.2. Arrays of
MLX give arrays of MLX (the kernel reads their memory in place), metalloid's give metalloid's, and
anything else gives NumPy's. A kernel of MLX's or NumPy's arrays runs when it is called, not when
its results are looked at.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.kernel_arguments import (
    check_list,
    extents,
    math_mode,
    threadgroup_extents,
)

_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
#: Elements from which on a result is made where MLX keeps it, and how it is declared there.
_MIN_SHARED_ELEMENTS = 2**20
_SHARED_DTYPES = {"bool": "bool_", "bfloat16": "uint16"} | {
    name: name
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "complex64")
}  # fmt: skip
#: Types that MLX gives to what NumPy and Python have in another width.
_NARROWED: dict[Any, Any] = {
    np.dtype(np.float64): np.float32,
    np.dtype(np.complex128): np.complex64,
}
_SCALARS: dict[type, Any] = {
    bool: np.bool_, int: np.int32, float: np.float32, complex: np.complex64,
}  # fmt: skip


def metal_kernel(
    name: str,
    input_names: Sequence[str] | str | None = None,
    output_names: Sequence[str] | None = None,
    source: str | None = None,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A kernel of its body alone; see `metalloid.metal_kernel`, and MLX's documentation.

    Parameters
    ----------
    name : str
    input_names, output_names : sequence of str
        Without them, ``metal_kernel(name, source)`` is that of MLX 0.17: names are the keys of the
        dictionaries that the call is given, sorted.
    source, header : str
    ensure_row_contiguous, atomic_outputs : bool
    compile_options : dict, optional
        ``{"math_mode": "safe" | "relaxed" | "fast"}``.

    Returns
    -------
    callable
        To be called with ``inputs``, ``output_shapes``, ``output_dtypes``, ``grid`` (threads),
        ``threadgroup``, and, optionally, ``template``, ``init_value``, ``verbose``, ``stream``.

    Raises
    ------
    ValueError, TypeError
        As MLX's, with its texts.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = metal_kernel("myexp", ["inp"], ["out"], '''
    ...     uint elem = thread_position_in_grid.x;
    ...     out[elem] = metal::exp(inp[elem]);''')
    >>> kernel(inputs=[np.zeros(3, np.float32)], grid=(3, 1, 1), threadgroup=(3, 1, 1),
    ...        output_shapes=[(3,)], output_dtypes=[np.float32])
    [array([1., 1., 1.], dtype=float32)]
    """
    if isinstance(input_names, str) and source is None:
        input_names, source = None, input_names
    if source is None:
        raise TypeError("metal_kernel(): incompatible function arguments: no source was given.")
    options = {
        "header": header, "ensure_row_contiguous": ensure_row_contiguous,
        "atomic_outputs": atomic_outputs, "math_mode": math_mode(compile_options),
    }  # fmt: skip
    if input_names is None and output_names is None:
        return _OfDictionaries(name, source, options)
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    return _OfLists(name, list(input_names or ()), list(output_names), source, options)


class _OfLists:
    """A kernel called with lists, in the order of the names."""

    def __init__(self, name: str, inputs: list[str], outputs: list[str], source: str,
                 options: dict[str, Any]) -> None:  # fmt: skip
        self._kernel = mtl.metal_kernel(name, inputs, outputs, source, **options)

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[Any]:
        """Run it; see `metal_kernel`."""
        kernel = self._kernel
        if template is None and init_value is None and stream is None and not verbose:
            try:
                return _run_usual(kernel, inputs, output_shapes, output_dtypes, grid, threadgroup)
            except (TypeError, ValueError, mtl.CompileError):
                pass  # what is unusual or wrong is found below
        check_list("inputs", inputs, kernel.input_names)
        check_list("output_shapes", output_shapes, kernel.output_names)
        check_list("output_dtypes", output_dtypes, kernel.output_names)
        if stream is not None:
            _check_stream(stream)
        return _run(
            kernel, inputs, output_shapes, output_dtypes, grid, threadgroup, template or (),
            init_value, verbose,
        )  # fmt: skip


class _OfDictionaries:
    """A kernel called with dictionaries, whose keys are the names."""

    def __init__(self, name: str, source: str, options: dict[str, Any]) -> None:
        self._name, self._source, self._options = name, source, options
        self._kernels: dict[Any, Any] = {}

    def __call__(
        self,
        *,
        inputs: Mapping[str, Any],
        output_shapes: Mapping[str, Sequence[int]],
        output_dtypes: Mapping[str, Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Mapping[str, Any] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
        ensure_row_contiguous: bool | None = None,
    ) -> dict[str, Any]:
        """Run it; see `metal_kernel`."""
        if set(output_shapes) != set(output_dtypes):
            raise ValueError(
                "[metal_kernel] `output_shapes` and `output_dtypes` must have the same keys."
            )
        if not output_shapes:
            raise ValueError("[metal_kernel] Must specify at least one output.")
        _check_stream(stream)
        names, outputs = sorted(inputs), sorted(output_shapes)
        options = self._options
        if ensure_row_contiguous is not None:
            options = {**options, "ensure_row_contiguous": ensure_row_contiguous}
        key = (*names, None, *outputs, options["ensure_row_contiguous"])
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = mtl.metal_kernel(self._name, names, outputs, self._source, **options)
            self._kernels[key] = kernel
        results = _run(
            kernel, [inputs[n] for n in names], [output_shapes[n] for n in outputs],
            [output_dtypes[n] for n in outputs], grid, threadgroup,
            sorted((template or {}).items()), init_value, verbose,
        )  # fmt: skip
        return dict(zip(outputs, results, strict=True))


def _run(kernel: Any, inputs: Sequence[Any], shapes: Sequence[Any], dtypes: Sequence[Any],
         grid: Any, threadgroup: Any, template: Sequence[Any], init_value: Any,
         verbose: bool) -> list[Any]:  # fmt: skip
    mx = sys.modules.get("mlx.core")
    is_mlx = mx is not None and any(isinstance(v, (mx.array, mx.Dtype)) for v in (*inputs, *dtypes))
    threads, group = extents("grid", grid), threadgroup_extents(threadgroup)
    if init_value is not None and not isinstance(init_value, bool | int | float | np.number):
        raise TypeError("__call__(): incompatible function arguments: init_value is not a number.")
    for shape in shapes:
        if type(shape) is not tuple and not isinstance(shape, Sequence):
            raise TypeError(
                "__call__(): incompatible function arguments: a shape is not a sequence."
            )
    outputs, call = _SharedOutputs(mx), kernel
    if is_mlx and not any(isinstance(value, mtl.Array) for value in inputs):
        call = functools.partial(kernel.run_eagerly, new=outputs.new)
    try:
        results = call(
            inputs=[_input(value, mx) for value in inputs],
            output_shapes=shapes,
            output_dtypes=[_dtype(value, mx) for value in dtypes],
            grid=threads, threadgroup=group, init_value=init_value, verbose=verbose,
            template=[(name, _template(value, mx)) for name, value in template] if template else (),
        )  # fmt: skip
    except mtl.CompileError as error:
        raise RuntimeError(
            f"[metal::Device] Unable to build metal library from source\n{error}"
        ) from error
    if not is_mlx:
        unlinked: list[Any] = results
        return unlinked
    return _linked(mx, inputs, [outputs.array(result) for result in results])


def _run_usual(kernel: Any, inputs: Sequence[Any], shapes: Sequence[Any], dtypes: Sequence[Any],
               grid: Any, threadgroup: Any) -> list[Any]:  # fmt: skip
    """The same, made short for arrays and nothing special.

    It checks what MLX refuses and metalloid does not, and leaves the rest to that.
    """
    mx = sys.modules.get("mlx.core")
    (_, _, _), (_, _, _) = grid, threadgroup
    given, is_mlx = [], False
    for value in inputs:
        kind = type(value)
        if mx is not None and kind is mx.array:
            value, is_mlx = _memory(value, mx), True
        elif kind is not np.ndarray or value.dtype in _NARROWED:
            value = _input(value, mx)
            if type(value) is not np.ndarray:
                raise TypeError  # it may be lazy
        given.append(value)
    known = [_dtype(value, mx) for value in dtypes]
    if not is_mlx and (mx is None or not known or type(dtypes[0]) is not mx.Dtype):
        plain: list[Any] = kernel.run_eagerly(given, grid, threadgroup, shapes, known)
        return plain
    for shape in shapes:
        if math.prod(shape) >= _MIN_SHARED_ELEMENTS:
            outputs = _SharedOutputs(mx)
            results = kernel.run_eagerly(given, grid, threadgroup, shapes, known, new=outputs.new)
            return _linked(mx, inputs, [outputs.array(result) for result in results])
    results = kernel.run_eagerly(given, grid, threadgroup, shapes, known)
    return _linked(mx, inputs, [_to_mlx(mx, result) for result in results])


def _check_stream(stream: Any) -> None:
    mx = sys.modules.get("mlx.core")
    if mx is not None and stream is not None and getattr(stream, "device", stream) == mx.cpu:
        raise ValueError("[metal_kernel] Only supports the GPU.")


# -- values of MLX, and ours


def _memory(array: Any, mx: Any) -> np.ndarray:
    try:
        return np.array(array, copy=None)
    except ValueError as error:
        if "transformations" in str(error):
            raise ValueError(
                "[metal_kernel] Not implemented for mx.vmap and mx.compile: here kernels run when "
                "they are called. Call the kernel outside of what is compiled or vectorised."
            ) from None
        # The buffer protocol has no name for bfloat16.
        return np.array(array.view(mx.uint16), copy=None).view(_BFLOAT16)


def _input(value: Any, mx: Any) -> Any:
    """The argument for our kernel: memory without a copy, numbers in MLX's types."""
    if type(value) is np.ndarray and value.dtype not in _NARROWED:
        return value  # the usual one first
    if mx is not None and isinstance(value, mx.array):
        return _memory(value, mx)
    if type(value) in _SCALARS:
        return np.asarray(value, _SCALARS[type(value)])
    if isinstance(value, list | tuple | str):
        kind = type(value).__name__
        raise ValueError(f"Invalid type {kind} received in array initialization.")
    if isinstance(value, np.ndarray | np.generic) and value.dtype in _NARROWED:
        return np.asarray(value, _NARROWED[value.dtype])
    return value


@functools.cache
def _dtype(value: Any, mx: Any) -> np.dtype[Any]:
    if mx is not None and isinstance(value, mx.Dtype):
        name = str(value).rpartition(".")[2]
        return np.dtype(_BFLOAT16 if name == "bfloat16" else name)
    if isinstance(value, np.dtype | type):
        return np.dtype(value)
    raise TypeError(f"__call__(): incompatible function arguments: {value!r} is not a dtype.")


def _template(value: Any, mx: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, int) and -(2**31) <= value < 2**31):
        return value
    try:
        return _dtype(value, mx)
    except TypeError:
        raise ValueError(
            "[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`."
        ) from None


def _to_mlx(mx: Any, array: Any) -> Any:
    if array.dtype is _BFLOAT16:
        return mx.array(np.asarray(array).view(np.uint16)).view(mx.bfloat16)
    return mx.array(array if type(array) is np.ndarray else np.asarray(array))


class _SharedOutputs:
    """Memory for results where MLX keeps them.

    MLX takes no memory of others without a copy, but lets others write to its own. For small
    results a copy is quicker.
    """

    def __init__(self, mx: Any) -> None:
        self._mx = mx
        self._arrays: list[tuple[np.ndarray, Any]] = []

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Memory for a result."""
        if math.prod(shape) < _MIN_SHARED_ELEMENTS or dtype.name not in _SHARED_DTYPES:
            return np.empty(shape, dtype)
        mx = self._mx
        make = getattr(mx, "empty", mx.zeros)  # older ones have only the latter
        try:
            array = make(shape, getattr(mx, _SHARED_DTYPES[dtype.name]))
            memory = np.asarray(memoryview(array)).view(dtype)
        except (RuntimeError, TypeError):  # of what is too large
            raise MemoryError from None
        self._arrays.append((memory, array))
        return memory

    def array(self, result: Any) -> Any:
        """The array of MLX with a result in it."""
        for memory, array in self._arrays:
            if memory is result:
                return array.view(self._mx.bfloat16) if memory.dtype == _BFLOAT16 else array
        return _to_mlx(self._mx, result)


# -- MLX's transformations


def _linked(mx: Any, inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
    """The outputs, which MLX knows to depend on those inputs that are arrays of its own.

    Otherwise they would be constants to its transformations, and all derivatives zero.
    """
    arrays = [value for value in inputs if isinstance(value, mx.array)]
    linked: list[Any] = _dependence(mx)(arrays, outputs) if arrays else outputs
    return linked


@functools.cache
def _dependence(mx: Any) -> Any:
    dependence = mx.custom_function(lambda inputs, outputs: outputs)
    dependence.vjp(functools.partial(_refuse, "vjp"))
    dependence.jvp(functools.partial(_refuse, "jvp"))
    dependence.vmap(functools.partial(_refuse, "vmap"))
    return dependence


def _refuse(transformation: str, *_: Any) -> Any:
    raise ValueError(
        f"[Primitive::{transformation}] Not implemented for CustomKernel. "
        "Give it one of its own: mx.custom_function."
    )


# -- programs that are not changed


def patch() -> None:
    """Let `mlx.core.fast.metal_kernel` be ours: custom kernels of unchanged programs run here.

    Raises
    ------
    ImportError
        If MLX is not installed.
    """
    mx = importlib.import_module("mlx.core")
    if mx.fast.metal_kernel is not metal_kernel:
        _originals["metal_kernel"] = mx.fast.metal_kernel
        mx.fast.metal_kernel = metal_kernel


def unpatch() -> None:
    """Give MLX its own back."""
    if _originals:
        mx = importlib.import_module("mlx.core")
        mx.fast.metal_kernel = _originals.pop("metal_kernel")


_originals: dict[str, Any] = {}
