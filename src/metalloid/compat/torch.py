"""``torch.mps.compile_shader`` for tensors of any device of ours.

    from metalloid.compat.torch import compile_shader  # for torch.mps.compile_shader
    # or, before an unchanged program:
    import metalloid.compat.torch as compat; compat.install()

Tensors are used in place. A kernel has ended when the call returns, and its numbers take the type
of their parameter, where torch copies 64 bits.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.metallib import COMPILED_BY_APPLE, msl_file
from metalloid.runtime.memory.buffer import ImportedBuffer

_CASTS: dict[str, Any] = {
    "fp16": np.float16, "fp32": np.float32, "int8": np.int8, "int16": np.int16, "int32": np.int32,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
}  # fmt: skip

#: What ``report_error`` of ``c10/metal/error.h`` writes: how many, and the first of them.
_MAX_MESSAGES = 30
_ERRORS = np.dtype([
    ("count", np.uint32),
    ("messages", [
        ("file", "S128"), ("function", "S128"), ("text", "S250"), ("padding", "S2"),
        ("line", np.uint32),
    ], _MAX_MESSAGES),
])  # fmt: skip


def compile_shader(source: str) -> ShaderLibrary:
    """The kernels of an MSL source.

    Parameters
    ----------
    source : str
        Includes of torch's own headers (``c10/metal/utils.h``) are found.

    Returns
    -------
    ShaderLibrary

    Raises
    ------
    SyntaxError
        With all errors of the text.

    Examples
    --------
    >>> import torch
    >>> lib = compile_shader('''kernel void full(device float* out, constant float& val,
    ...                         uint idx [[thread_position_in_grid]]) { out[idx] = val; }''')
    >>> x = torch.zeros(4)
    >>> lib.full(x, 3.25)
    >>> x
    tensor([3.2500, 3.2500, 3.2500, 3.2500])
    """
    return ShaderLibrary(functools.partial(mtl.library, source, include_dirs=[_headers()]))


def _headers() -> Path:
    return Path(str(importlib.import_module("torch").__file__)).parent / "include"


def load_metallib(source: bytes | bytearray | str | os.PathLike[str]) -> ShaderLibrary:
    """The kernels of a library's text.

    Parameters
    ----------
    source : bytes or path-like
        MSL source, or a file of it. For a ``.metallib``, which holds code for Apple's GPUs, the
        ``.metal`` of the same name in its folder is read.

    Raises
    ------
    TypeError
        If it is neither.
    RuntimeError
        If there is no text.
    SyntaxError
        See `compile_shader`.
    """
    if isinstance(source, bytes | bytearray):
        if source.startswith(COMPILED_BY_APPLE):
            raise RuntimeError("the library holds code for Apple GPUs: pass its MSL source")
        return compile_shader(bytes(source).decode())
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"expected bytes or path, got {type(source).__name__}")
    path = os.fspath(source)
    file = msl_file(path)
    if file is None:
        raise RuntimeError(f"no MSL source for {path}: put it next to it, as .metal")
    return ShaderLibrary(functools.partial(mtl.library, path=file, include_dirs=[_headers()]))


class ShaderLibrary:
    """Kernels by name, as attributes.

    Parameters
    ----------
    make : callable
        Makes the library for a device, ``device=``.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._libraries: dict[Any, Any] = {}
        self._on(mtl.default_device())  # errors of the text are raised here

    def _on(self, device: Any) -> Any:
        if device not in self._libraries:
            self._libraries[device] = self._make(device=device)
        return self._libraries[device]

    def __getattr__(self, name: str) -> ShaderKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel = ShaderKernel(
            getattr(self._on(mtl.default_device()), name),
            lambda device: getattr(self._on(device), name),
        )
        self.__dict__[name] = kernel
        return kernel

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._on(mtl.default_device()).functions]


class ShaderKernel:
    """A kernel, to be called with tensors and numbers in the order of its parameters.

    Parameters
    ----------
    kernel : Kernel
        Of the default device, which takes the tensors of the CPU.
    elsewhere : callable
        The same kernel on another device.
    """

    def __init__(self, kernel: Any, elsewhere: Callable[[Any], Any]) -> None:
        self._kernel, self._elsewhere = kernel, elsewhere

    @property
    def max_threads_per_threadgroup(self) -> int:
        """Threads a threadgroup may have."""
        return int(self._kernel.max_group_size)

    @property
    def thread_execution_width(self) -> int:
        """Threads of a simdgroup."""
        return 32

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | Mapping[int, str] | None = None,
        error_buf_idx: int | None = None,
    ) -> None:
        """Run it.

        Parameters
        ----------
        *args : Tensor, number, or a list of numbers
        threads : int or sequence of int, optional
            Of the grid; without it, as many as the first tensor has elements.
        group_size : int or sequence of int, optional
            As many numbers as `threads` has.
        arg_casts : str or dict of str, optional
            Types of numbers ("fp16", "int32" ...), of all or by position.
        error_buf_idx : int, optional
            The parameter for ``c10::metal::ErrorMessages``.

        Raises
        ------
        TypeError, ValueError
            If the arguments do not fit.
        RuntimeError
            If no number of threads is known, or with the first message of the kernel.
        """
        given = list(args)
        if threads is None:
            tensor = next((value for value in given if _is_tensor(value)), None)
            if tensor is None:
                raise RuntimeError("Number of threads is undefined or has wrong dimension")
            threads = tensor.numel()
        grid = _extents(threads)
        group = None if group_size is None else _extents(group_size)
        if len(grid) > 3 or (group is not None and len(group) != len(grid)):
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        kernel = self._kernel_for(given)
        values = [
            _memory(value, kernel.device) if _is_tensor(value) else _number(value, index, arg_casts)
            for index, value in enumerate(given)
        ]
        errors = np.zeros(1, _ERRORS)
        if error_buf_idx is not None:
            values.insert(error_buf_idx, errors.view(np.uint8).data)
        kernel(*values, threads=grid, group_size=group)
        if errors["count"][0]:
            _raise_first(errors["messages"][0, 0])

    def _kernel_for(self, given: Sequence[Any]) -> Any:
        """The kernel on the device that has the first tensor which is not the CPU's."""
        for value in given:
            if _is_tensor(value) and value.device.type != "cpu":
                name = f"{value.device.type}:{value.device.index}"
                if name != self._kernel.device.name:
                    return self._elsewhere(mtl.Device(name))
                break
        return self._kernel


def _extents(value: int | Sequence[int]) -> tuple[int, ...]:
    try:
        return (operator.index(value),)  # type: ignore[arg-type]
    except TypeError:
        return tuple(map(operator.index, value))  # type: ignore[arg-type]


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr")


def _number(value: Any, index: int, casts: str | Mapping[int, str] | None) -> Any:
    name = casts if isinstance(casts, str) or casts is None else casts.get(index)
    if name is None:
        return value
    if name not in _CASTS:
        raise ValueError(f"Unsupported cast {name!r}; choose one of {', '.join(_CASTS)}.")
    array = np.asarray(value).astype(_CASTS[name])
    return array if array.ndim else array[()]


def _memory(tensor: Any, device: Any) -> Any:
    """The memory of a tensor from its first element on, as bytes: parameters say their type.

    What is not contiguous is handed over as it lies, as torch does.
    """
    flat = tensor.detach()
    if not flat.is_contiguous():
        available = flat.untyped_storage().nbytes() // flat.element_size() - flat.storage_offset()
        flat = flat.as_strided((available,), (1,))
    flat = flat.reshape(-1).view(importlib.import_module("torch").uint8)
    if flat.device.type == "cpu":
        return memoryview(flat.numpy())
    memory = device.exchange.import_memory(flat)
    return flat if memory is None else ImportedBuffer(device, memory)


def _raise_first(message: Any) -> None:
    text, file, function = (message[k].decode() for k in ("text", "file", "function"))
    error = getattr(importlib.import_module("torch"), "AcceleratorError", RuntimeError)
    raise error(f"{file}:{message['line']}: {function}: {text}")


# -- programs that are not changed


def install() -> None:
    """Let `torch.mps.compile_shader` be ours: shaders of unchanged programs run on CPU tensors.

    So does `torch.mps.load_metallib`.
    """
    mps = importlib.import_module("torch.mps")
    for ours in (compile_shader, load_metallib):
        original = getattr(mps, ours.__name__, None)
        if original is not ours:
            _originals[ours.__name__] = original
            setattr(mps, ours.__name__, ours)


def uninstall() -> None:
    """Give torch its own back."""
    mps = importlib.import_module("torch.mps")
    while _originals:
        setattr(mps, *_originals.popitem())


_originals: dict[str, Any] = {}
