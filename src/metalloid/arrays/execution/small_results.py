"""Small results of one run, which are copied to the host together when one of them is read.

Each copy from a device waits for it, which takes longer than the copy of a few kilobytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from metalloid.arrays.ir.memory import Memory
from metalloid.runtime.devices.device import Device

MAX_BYTES = 4096
#: Maximum results of a run that are copied together.
_MAX_RESULTS = 16

#: By device, the small results of the latest run that has several, until one of them is read.
_latest: dict[Device, tuple[weakref.ref[Memory], ...]] = {}
#: Copies of results that have not been read.
_copies: weakref.WeakKeyDictionary[Memory, np.ndarray] = weakref.WeakKeyDictionary()


def indices_of_small(device: Device, sizes: Sequence[int]) -> tuple[int, ...]:
    """The indices of results to copy together, by the sizes of all results; none if it is one."""
    small = [k for k, nbytes in enumerate(sizes) if nbytes <= MAX_BYTES]
    return tuple(small[:_MAX_RESULTS]) if device.memory == "own" and len(small) > 1 else ()


def add_run(device: Device, memories: Sequence[Memory]) -> None:
    """Record the small results of a run."""
    _latest[device] = tuple(map(weakref.ref, memories))


def take_copy(memory: Memory) -> np.ndarray | None:
    """The bytes of a small result, the first time it is read; None if it is to be copied alone."""
    copy = _copies.pop(memory, None)
    if copy is not None:
        return copy
    run = _latest.get(memory.device, ())
    alive = [each for reference in run if (each := reference()) is not None]
    if len(alive) < 2 or all(each is not memory for each in alive):
        return None
    _latest.pop(memory.device, None)
    windows = [(each.bound.address, each.bound.nbytes) for each in alive]
    for each, contents in zip(alive, memory.device.copy_out_combined(windows), strict=True):
        _copies[each] = contents
    return _copies.pop(memory)


def forget_copy(memory: Memory) -> None:
    """Drop the copy of memory that is about to be written, and make none."""
    run = _latest.get(memory.device)
    if run is not None:
        _latest[memory.device] = tuple(each for each in run if each() is not memory)
    _copies.pop(memory, None)
