"""Binders of arguments: each checks the values of one parameter, and explains misfits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments, HostMemory, PlainParameter
from metalloid.runtime.memory.buffer import Buffer, ImportedBuffer, Window

#: Libraries whose arrays are immutable although their protocols say otherwise, by package.
_IMMUTABLE = {"mlx": "MLX", "jax": "JAX", "jaxlib": "JAX", "tensorflow": "TensorFlow"}


@dataclass(frozen=True)
class ThreadgroupMemory:
    """The argument for a ``threadgroup T* [[threadgroup(n)]]`` parameter: its size."""

    nbytes: int


class ArgumentBinder(ABC):
    """Binds values to a parameter, or to a member of one.

    Attributes
    ----------
    parameter : BoundParameter
    device : Device
        The device of the kernel.
    position : int
        Of its word among those of the launch.
    label : str
        Its name in messages.
    stages : bool
        Whether host memory has to be copied to the device.
    """

    __slots__ = ("device", "kernel", "label", "parameter", "position", "stages")

    def __init__(self, kernel: str, parameter: BoundParameter, device: Device) -> None:
        self.kernel, self.parameter, self.device = kernel, parameter, device
        self.position, self.label = parameter.position, parameter.label
        self.stages = device.memory != "host"

    @property
    def plain(self) -> PlainParameter | None:
        """The parameter in the form for fast launches; None if it has none."""
        return None

    @abstractmethod
    def bind(self, value: Any, bound: Arguments) -> int:
        """The word of `value` in a launch; objects that must stay alive are added to `bound`.

        Raises
        ------
        ArgumentError
            If it does not fit.
        """

    def stage(self, bound: Arguments, address: int, nbytes: int, written: bool) -> None:
        """Stage host memory that this parameter points to."""
        bound.staged.append(HostMemory(address, nbytes, written, self.position))

    def import_memory(self, value: Any, bound: Arguments) -> ImportedBuffer | None:
        """Import another library's array on the device; None if it is not there."""
        if not self.stages or isinstance(value, Buffer):
            return None
        self.check_mutable(value)
        try:
            memory = self.device.exchange.import_memory(value)
        except (ArgumentError, BufferError, RuntimeError) as error:
            raise self.refuse(value, str(error)) from None
        if memory is None:
            return None
        if not memory.is_contiguous:
            raise self.refuse(value, "the array is not contiguous", "Pass a contiguous copy.")
        if memory.read_only and not self.parameter.layout.read_only:
            raise self.refuse_read_only(value)
        bound.host_memory |= memory.waits
        return ImportedBuffer(self.device, memory)

    def check_mutable(self, value: Any) -> None:
        """Refuse immutable arrays whose library exports them as mutable."""
        library = type(value).__module__.partition(".")[0]
        if library in _IMMUTABLE and not self.parameter.layout.read_only:
            raise self.refuse(
                value,
                f"the kernel may write to it and arrays of {_IMMUTABLE[library]} are immutable",
                "Pass a copy (numpy.array(x)), or a const parameter to a kernel that only reads.",
            )

    def as_array(self, value: Any) -> np.ndarray | None:
        """A NumPy array, or one imported by DLPack; None for other values."""
        if isinstance(value, np.ndarray):
            return value
        if not hasattr(value, "__dlpack__") or isinstance(value, type):
            return None
        self.check_mutable(value)
        from metalloid.runtime.interop.dlpack import from_dlpack

        try:
            return from_dlpack(value)
        except (ArgumentError, BufferError, RuntimeError) as error:
            raise self.refuse(value, str(error)) from None

    def refuse_read_only(self, value: Any) -> ArgumentError:
        """The error for a read-only array where the kernel may write."""
        return self.refuse(
            value, "the kernel may write to it and the array is read-only", "Pass a copy."
        )

    def refuse_device(self, value: Any, device: Device) -> ArgumentError:
        """The error for memory on `device` instead of the kernel's."""
        return self.refuse(value, f"it is on {device.name}, the kernel on {self.device.name}")

    def refuse(self, value: Any, why: str, hint: str = "") -> ArgumentError:
        """The error for a value that does not fit."""
        if isinstance(value, ThreadgroupMemory):
            why, hint = "threadgroup memory goes to [[threadgroup(n)]] parameters", ""
        text = (
            f"[{self.kernel}] {self.label} expects {self.parameter.declaration}, "
            f"got {describe(value)}: {why.removesuffix('.')}."
        )
        return ArgumentError(f"{text} {hint}".rstrip())


def describe(value: Any) -> str:
    """A short description of a value: its type, and its dtype and shape or its repr."""
    if isinstance(value, np.ndarray | Window):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, Buffer):
        return f"a Buffer of {value.nbytes} bytes"
    if isinstance(value, type):
        return repr(value)  # a class instead of an object
    is_array_like = hasattr(value, "dtype") and hasattr(value, "shape")
    if is_array_like and not isinstance(value, np.generic):
        return f"a {type(value).__name__} of {value.dtype} with shape {tuple(value.shape)}"
    text = " ".join(repr(value).split())
    if text.startswith("<"):
        return text  # it describes itself
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
