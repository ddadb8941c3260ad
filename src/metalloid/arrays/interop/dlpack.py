"""Import memory of other libraries as arrays, and export memory of arrays.

An array on memory that its owner may write is a view: it shows the current contents. Expressions
that use it are evaluated immediately (`evaluate.settled`), since lazy ones would see later writes.
Arrays never write to imported memory (`Memory.is_own`), and exported memory is read-only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid.arrays.execution.calls import first_number, to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.execution.small_results import take_copy
from metalloid.arrays.ir.dtypes import as_dtype
from metalloid.arrays.ir.host_arrays import can_share, from_numpy
from metalloid.arrays.ir.index_checks import verify_pending
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.memory import SHARED, UNORDERED, Memory
from metalloid.arrays.ir.node import BUFFER, CHECKED, ELEMENTWISE, Node, in_memory
from metalloid.arrays.ir.ops import CAST
from metalloid.errors import ArgumentError, DeviceUnavailable
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import device_at, get_device
from metalloid.runtime.interop.dlpack import can_say_read_only, capsule_of_array
from metalloid.runtime.interop.exchange import HOST
from metalloid.runtime.interop.export import Exported, exports_in_place
from metalloid.runtime.memory.buffer import ImportedBuffer


def imported(value: Any, device: str | Device | None, where: str) -> Node | None:
    """Import another library's array as a leaf; None if its memory is the host's.

    Parameters
    ----------
    device : str or Device, optional
        The device of objects that do not name one.

    Raises
    ------
    BufferError
        If kernels cannot use the memory.
    """
    owner = _owning_device(value, device)
    if owner is None:
        return None
    try:
        memory = owner.exchange.import_memory(value)
    except (ArgumentError, RuntimeError) as error:
        raise BufferError(f"[{where}] {error}") from None
    if memory is None:
        return None
    size = memory.dtype.itemsize
    steps = memory.strides
    if steps is not None and any(step % size for step in steps):
        raise BufferError(
            f"[{where}] the strides {steps} in bytes are not multiples of the element size."
        )
    strides = row_major(memory.shape) if steps is None else tuple(step // size for step in steps)
    buffer = ImportedBuffer(owner, memory)
    layout = Layout(memory.shape, strides, buffer.start // size)
    sharing = SHARED | (UNORDERED if memory.waits else 0)
    shared = Memory.of(owner, buffer, 0 if memory.read_only else sharing)
    return in_memory(shared, layout, as_dtype(memory.dtype))


def _owning_device(value: Any, device: str | Device | None) -> Device | None:
    """Return the device that owns the memory; None for the host."""
    if not hasattr(value, "__dlpack_device__"):
        is_cuda = hasattr(value, "__cuda_array_interface__")
        return get_device(device) if is_cuda else None
    kind, number = map(int, value.__dlpack_device__())
    if (kind, number) == HOST:
        return None
    try:
        return device_at(kind, number)
    except DeviceUnavailable as error:
        raise BufferError(f"the {type(value).__name__} is on GPU {number}: {error}") from None


def imported_from_host(array: np.ndarray, device: Device, where: str) -> Node:
    """Import a NumPy array as a leaf.

    Raises
    ------
    ValueError
        If the device cannot share the memory.
    """
    as_dtype(array.dtype)  # raises for unsupported types
    if device.memory != "host":
        raise ValueError(f"[{where}] {device.name} has its own memory: a copy is required.")
    if not can_share(array, device):
        raise ValueError(
            f"[{where}] {array.dtype} of shape {array.shape} and strides {array.strides} requires "
            "a copy: only contiguous, aligned memory in native byte order is shared."
        )
    return from_numpy(array, device, False, SHARED | UNORDERED if _may_change(array) else 0)


def _may_change(memory: Any) -> bool:
    """Whether Python can write to the memory, through an array or through its base."""
    if isinstance(memory, np.ndarray):
        return memory.flags.writeable or _may_change(memory.base)
    if isinstance(memory, memoryview):
        return not memory.readonly or _may_change(memory.obj)
    return isinstance(memory, bytearray)


def owned_copy(node: Node) -> Node:
    """Copy a node to memory of its own, immediately."""
    copy = Node(ELEMENTWISE, CAST, (node,), node.dtype, node.shape, node.device)
    (copied,) = evaluate([copy], wait=bool(node.flags & UNORDERED))
    return copied


def unshared(node: Node) -> Node:
    """Return a node that no other library can write to: a copy if its memory is shared."""
    return owned_copy(node) if node.kind is BUFFER and node.flags else node


def dlpack_capsule(node: Node, stream: Any, max_version: tuple[int, int] | None,
             device: tuple[int, int] | None, copy: bool | None) -> Any:  # fmt: skip
    """Implement ``__dlpack__``: export read-only memory of the node, or a copy.

    An unversioned capsule cannot mark memory as read-only, so its consumer gets a copy, unless it
    refuses one: then it may write to the memory, which is that of `writeable`.

    Raises
    ------
    BufferError
        If ``copy=False`` and a copy is required.
    """
    is_on_device = exports_in_place(node.device.exchange, device, copy)
    read_only = can_say_read_only(max_version)
    is_copied = bool(copy) if read_only else copy is not False
    if is_on_device:
        source = owned_copy(node) if is_copied else node
        is_protected = read_only and not is_copied
        return export_of(source).to_dlpack(stream, max_version, is_protected, is_copied)
    (node,) = evaluate([node])
    array = to_host(node, read_only or is_copied)
    is_shared = node.device.memory != "own"
    if is_copied and is_shared:
        array = array.copy()
    return capsule_of_array(array, max_version, is_copied or not is_shared)


def writeable(node: Node, is_exclusive: bool) -> Node:
    """A leaf of the same values to whose memory another library may write from now on.

    Parameters
    ----------
    is_exclusive : bool
        Whether no other array or expression depends on the node's memory, which is used in place;
        otherwise the leaf has memory of its own.
    """
    (node,) = evaluate([node])
    if not is_exclusive and not node.flags & SHARED:
        node = owned_copy(node)
    memory = node.memory
    assert memory is not None
    take_copy(memory)  # not to be read later
    memory.sharing |= SHARED | UNORDERED
    return in_memory(memory, node.layout, node.dtype)


def export_of(node: Node) -> Exported:
    """Export the memory of a node; consumers synchronise by streams.

    They do not see checks of indices, so these are verified here.
    """
    (node,) = evaluate([node], wait=bool(node.flags & CHECKED))
    verify_pending(node.device, first_number)
    assert node.memory is not None
    strides, start = node.data
    size = node.dtype.itemsize
    return Exported(
        node.memory.bound.address + start * size,
        node.dtype,
        node.shape,
        tuple(step * size for step in strides),
        node.memory,
        node.device.exchange,
    )
