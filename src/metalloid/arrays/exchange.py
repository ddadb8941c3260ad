"""Arrays on a device's own memory that other libraries made, or are given."""

from __future__ import annotations

from typing import Any

from metalloid.arrays.evaluate import evaluate
from metalloid.arrays.layout import Layout, row_major
from metalloid.arrays.memory import Memory
from metalloid.arrays.node import MAP, Node, in_memory
from metalloid.arrays.ops import CAST
from metalloid.arrays.types import as_dtype
from metalloid.errors import ArgumentError, DeviceUnavailable
from metalloid.runtime.buffer import BorrowedBuffer
from metalloid.runtime.device import Device
from metalloid.runtime.exchange import HOST
from metalloid.runtime.lending import Lent
from metalloid.runtime.registry import device_at, get_device


def borrowed(value: Any, device: str | Device | None, where: str) -> Node | None:
    """A leaf on the memory of another library's array; None if that is in the host's.

    Parameters
    ----------
    device : str or Device, optional
        Whose memory it should be, of what does not say whose it is.

    Raises
    ------
    BufferError
        If kernels cannot use it.
    """
    home = _home(value, device)
    if home is None:
        return None
    try:
        memory = home.exchange.borrow(value)
    except (ArgumentError, RuntimeError) as error:
        raise BufferError(f"[{where}] {error}") from None
    if memory is None:
        return None
    size = memory.dtype.itemsize
    steps = memory.strides
    if steps is not None and any(step % size for step in steps):
        raise BufferError(f"[{where}] the elements lie at odd places: strides {steps} in bytes.")
    strides = row_major(memory.shape) if steps is None else tuple(step // size for step in steps)
    buffer = BorrowedBuffer(home, memory)
    layout = Layout(memory.shape, strides, buffer.start // size)
    return in_memory(Memory.of(home, buffer), layout, as_dtype(memory.dtype))


def _home(value: Any, device: str | Device | None) -> Device | None:
    """The device whose memory it is; None for the host's."""
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


def copied(node: Node) -> Node:
    """The same values in memory of their own, now."""
    copy = Node(MAP, CAST, (node,), node.dtype, node.shape, node.device)
    evaluate([copy], wait=False)
    return copy


def lent(node: Node) -> Lent:
    """The memory of a node for others, who wait for it as they do for each other."""
    evaluate([node], wait=False)
    assert node.memory is not None
    strides, start = node.data
    size = node.dtype.itemsize
    return Lent(
        node.memory.bound.address + start * size,
        node.dtype,
        node.shape,
        tuple(step * size for step in strides),
        node.memory,
        node.device,
    )
