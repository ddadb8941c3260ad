"""Buffers: memory of a device that Python can read and write."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metalloid.errors import ArgumentError, OutOfMemory
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.failures import Failure

if TYPE_CHECKING:
    import numpy as np

    from metalloid.runtime.interop.export import Exported
    from metalloid.runtime.interop.strided import Imported
    from metalloid.runtime.memory.host_copy import HostCopy


class Buffer:
    """Device memory, which stays on the device between launches.

    Parameters
    ----------
    source : int or array-like
        A number of bytes (zero-filled), or an array to copy.
    device : str or Device, optional
        By default the default device.
    visible : bool, optional
        Whether Python can access the memory in place on NVIDIA GPUs too (managed memory). CUDA
        then migrates pages on access, which is slower than one copy.

    Attributes
    ----------
    nbytes : int
    dtype, shape
        Those of the source array; bytes otherwise.
    device : Device
    host_copy : HostCopy or None
        Its copy on the host, where Python cannot access the device's memory.
    failure : Failure or None
        Of a launch that wrote to it and failed; reads raise it.
    is_fresh : bool
        Whether it still has its first zeros: it was made from a number of bytes, and neither Python
        nor a launch on the CPU has had access that may write to it.
    is_zeroed : bool
        Whether a program may rely on these zeros.

    Raises
    ------
    OutOfMemory
        If the device is out of memory.
    ArgumentError
        For a negative size, or a source that is not an array of numbers.

    Notes
    -----
    ``numpy.asarray(buffer)`` is a view of the same memory on the CPU and on Apple GPUs. It waits
    for the launches that use the buffer; later launches write to the memory of the view. On NVIDIA
    GPUs it is a copy, fetched if the device's memory is newer. Python's writes to it are copied
    back before the next launch that uses the buffer.

    torch, CuPy and others use the memory of a buffer on a GPU without a copy
    (``torch.from_dlpack(buffer)``, ``cupy.asarray(buffer)``), and keep it alive.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> mtl.Buffer(16).nbytes
    16
    >>> np.asarray(mtl.Buffer(np.array([1, 2, 3], dtype=np.int16)))
    array([1, 2, 3], dtype=int16)
    """

    #: Attributes that native functions read (runtime/native/fast_launch.h), and the others.
    __slots__ = (
        "__dict__", "__weakref__", "_pending", "address", "device", "failure", "host_copy",
        "nbytes",
    )  # fmt: skip

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_zeroed = True

    def __init__(
        self, source: int | Any, device: str | Device | None = None, visible: bool = False
    ) -> None:
        import numpy as np

        self.device = get_device(device)
        contents: np.ndarray | None = None
        self.is_fresh = False
        if isinstance(source, int | np.integer) and not isinstance(source, bool):
            if source < 0:
                raise ArgumentError(f"[Buffer] a size cannot be negative ({source}).")
            self.nbytes, self.dtype, self.shape = int(source), np.dtype(np.uint8), (int(source),)
            self.is_fresh = True
        else:
            contents = np.ascontiguousarray(source).reshape(np.shape(source))
            if contents.dtype.kind not in "biufcV" or contents.dtype.hasobject:
                raise ArgumentError(
                    f"[Buffer] expects a number of bytes or an array of numbers, "
                    f"got {type(source).__name__}."
                )
            self.nbytes, self.dtype, self.shape = contents.nbytes, contents.dtype, contents.shape
        self._is_visible = visible or self.device.memory != "own"
        allocate = self.device.allocate_visible if visible else self.device.allocate
        try:
            self.address = allocate(self.nbytes)
        except OutOfMemory:
            gc.collect()  # a buffer and the launch that uses it may hold each other
            self.address = allocate(self.nbytes)
        self._pending: Event | None = None
        self.failure: Failure | None = None
        self.host_copy: HostCopy | None = None
        self._is_exported = False
        self._release = weakref.finalize(self, self.device.free, self.address, self.nbytes)
        # At exit a kernel may still run; the system frees the memory.
        self._release.atexit = False
        if contents is not None and contents.nbytes:
            given = contents.reshape(-1).view(np.uint8)
            if visible:
                self.host_bytes()[...] = given
            else:
                self.device.copy_in(self.address, given.data)

    def used_by(self, event: Event) -> None:
        """Record the latest launch that uses this buffer."""
        self._pending = event
        if self.host_copy is not None:
            self.host_copy.is_current = False

    def settle(self) -> None:
        """Wait for the launches that use this buffer, whether or not they failed."""
        event = self._pending
        if event is not None:
            event.settle()
            self.device.settle()
            if self._pending is event:
                self._pending = None

    def wait(self) -> None:
        """Wait for the launches that use this buffer.

        Raises
        ------
        KernelFault, LaunchTimeout, LaunchCancelled
            If a launch that wrote to it failed, until another launch writes to it.
        """
        self.settle()
        if self.failure is not None:
            self.failure.throw()

    def host_bytes(self) -> np.ndarray:
        """Its bytes, which Python can read and write, after the launches so far."""
        import numpy as np

        from metalloid.runtime.memory.host_copy import Bytes, HostCopy

        self.wait()
        self.is_fresh = False  # Python may write to the view
        if self._is_visible:
            return np.asarray(Bytes(self, self.address, self.nbytes))
        if self.host_copy is None:
            self.host_copy = HostCopy(self.device, self.address, self.nbytes)
            self.host_copy.is_shared = self._is_exported
        return self.host_copy.view()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self._is_visible:
            raise AttributeError("__array_interface__")  # NumPy then asks __array__
        self.wait()
        self.is_fresh = False
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self.address, False),
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        import numpy as np

        array = self.host_bytes().view(self.dtype).reshape(self.shape)
        return np.array(array, dtype, copy=copy)

    # -- other libraries

    def _exported(self) -> Exported:
        """The memory for other libraries, which may write to it from now on."""
        from metalloid.runtime.interop.export import Exported

        self._is_exported, self.is_fresh = True, False
        if self.host_copy is not None:
            self.host_copy.to_device()
            self.host_copy.share()
        return Exported(self.address, self.dtype, self.shape, None, self, self.device.exchange)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.exchange.dlpack_device

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None,
                   dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:  # fmt: skip
        from metalloid.runtime.interop.dlpack import capsule_of_array
        from metalloid.runtime.interop.export import exports_in_place

        if not exports_in_place(self.device.exchange, dl_device, copy):
            return capsule_of_array(self.__array__(copy=copy), max_version, bool(copy))
        if copy:
            raise BufferError("[Buffer] exports its own memory: copy the result instead.")
        return self._exported().to_dlpack(stream, max_version)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        from metalloid.runtime.interop.export import require_cuda

        require_cuda(self.device.exchange)
        return self._exported().to_cuda()

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        return f"<Buffer {self.nbytes} bytes ({self.dtype} {self.shape}) on {self.device.name}>"


class ImportedBuffer(Buffer):
    """Memory of a device that another library owns, imported without a copy.

    Parameters
    ----------
    memory : Imported
        Its elements need not be contiguous.

    Attributes
    ----------
    start : int
        Offset of the first element, in bytes.
    """

    def __init__(self, device: Device, memory: Imported) -> None:
        below, above = memory.reach
        self.device, self.dtype, self.shape = device, memory.dtype, memory.shape
        self.address, self.start, self.nbytes = memory.address - below, below, below + above
        self._memory = memory  # and with it the owner
        self._pending = self.failure = self.host_copy = None
        self._is_exported, self._is_visible, self.is_fresh = True, False, False

    def used_by(self, event: Event) -> None:
        """Make the library's own work wait for the launch.

        The launch refers to the buffer. A reference back would keep the library's memory alive
        until a garbage collection.
        """
        if self._memory.then is not None:
            self._memory.then()


@dataclass(frozen=True)  # no tuple, as those are values of structs
class Window:
    """An array in part of a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Its offset, in bytes.
    dtype : numpy.dtype
        "V1" for bytes, which parameters of any type take.
    shape : tuple of int
    owner : object, optional
        What returns the buffer to a pool when nothing refers to it.
    """

    buffer: Buffer
    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: Any = None

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize
