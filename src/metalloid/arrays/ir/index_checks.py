"""Checks of indices without known values: of traced functions, and on devices of their own memory.

Such indices are a primitive, `checked_index`. Kernels clip them, so that none accesses memory out
of bounds, and a reduction finds the index that is farthest out of range. An evaluation reads this
one number after its kernels. On devices of their own memory, the next read of an array does.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from metalloid.arrays.ir.dtypes import bool_, int64, uint64
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import (
    CHECKED,
    PRIMITIVE,
    Node,
    apply,
    cast,
    constant,
    reduce,
    reshape,
)
from metalloid.arrays.ir.ops import OPS, WHERE
from metalloid.arrays.ir.primitives import bind, implement, lowered
from metalloid.runtime.devices.device import Device

_PACKAGE = str(Path(__file__).parents[2])


class IndexCheck(NamedTuple):
    """An index array that must be in the range of an axis.

    Attributes
    ----------
    extent, axis : int
    line : str
        The user's file and line.
    """

    extent: int
    axis: int
    line: str

    def verify(self, code: int) -> None:
        """Raise IndexError for the maximum of `_violations`, unless it is 0."""
        if code:
            distance = code // 2
            index = -self.extent - distance if code % 2 else self.extent - 1 + distance
            error = out_of_range(index, self.extent, self.axis)
            error.add_note(f"It was used as an index at {self.line}.")
            raise error


#: By device with its own memory: the codes of checks that no read has verified yet.
pending: dict[Device, list[tuple[Memory, IndexCheck]]] = {}


class _ReadIndices(threading.local):
    """Indices that were found in the range ``[0, extent)`` while a call is recorded.

    Attributes
    ----------
    nodes : list of (Node, int) or None
        Index arrays and extents; None unless a call is recorded.
    """

    nodes: list[tuple[Node, int]] | None = None


read_indices = _ReadIndices()


def first_word(memory: Memory) -> int:
    """The unsigned integer at the start of computed memory that the host can access."""
    memory.bound.wait()
    return int(ctypes.c_uint64.from_address(memory.address).value)


def verify(computed: Iterable[tuple[Memory, IndexCheck]]) -> None:
    """Verify checks whose codes are computed, at once or when an array of their device is read."""
    for memory, check in computed:
        if memory.device.memory == "own":
            pending.setdefault(memory.device, []).append((memory, check))
        else:
            check.verify(first_word(memory))


def verify_pending(device: Device, read: Callable[[Memory], int]) -> None:
    """Verify all checks that a device has computed."""
    while checks := pending.get(device):
        memory, check = checks.pop(0)
        check.verify(read(memory))


def out_of_range(index: int, extent: int, axis: int) -> IndexError:
    """The error of an index."""
    return IndexError(f"[index] {index} is out of range for axis {axis} of extent {extent}.")


def checked(index: Node, check: IndexCheck) -> Node:
    """Valid indices of an axis, from int64 ones that are checked when they are evaluated."""
    (node,) = bind("checked_index", [index], (check,), (int64, index.shape))
    node.flags |= CHECKED
    return node


def checks_below(roots: Sequence[Node]) -> list[tuple[Node, IndexCheck]]:
    """The checks that roots depend on, each with the node of its code."""
    reached = {root for root in roots if root.flags & CHECKED}
    walk = list(reached)
    checks = []
    for node in walk:  # grows while it is traversed
        if node.kind is PRIMITIVE and node.data.name == "checked_index":
            checks.append((_violation(node.args[0], *node.data.params), node.data.params[0]))
        elif node in lowered:
            index, (check,) = lowered[node]
            checks.append((_violation(index, check), check))
        for arg in node.args:
            if arg.flags & CHECKED and arg not in reached:
                reached.add(arg)
                walk.append(arg)
    return checks


def users_line() -> str:
    """The file and line of the caller outside of the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _number(value: int, like: Node) -> Node:
    return constant(value, int64, like.device)


def _violation(index: Node, check: IndexCheck) -> Node:
    """The maximum over all indices of twice the distance from the range, plus 1 below it."""
    extent, zero, one = (_number(n, index) for n in (check.extent, 0, 1))
    above = apply(OPS["add"], int64, apply(OPS["subtract"], int64, index, extent), one)
    below = apply(OPS["negative"], int64, apply(OPS["add"], int64, index, extent))
    in_range, odd = (constant(n, uint64, index.device) for n in (0, 1))
    codes: Node = in_range
    for distance, is_odd in ((below, True), (above, False)):
        wide = cast(distance, uint64)
        code = apply(OPS["add"], uint64, wide, wide)
        code = apply(OPS["add"], uint64, code, odd) if is_odd else code
        is_outside = apply(OPS["greater"], bool_, distance, zero)
        codes = apply(WHERE, uint64, is_outside, code, codes)
    return reduce(reshape(codes, (index.size,)), "max", (0,))


def _clipped(index: Node, check: IndexCheck) -> Node:
    """Indices within the axis; negative ones count from its end."""
    extent, zero, last = (_number(n, index) for n in (check.extent, 0, check.extent - 1))
    is_negative = apply(OPS["less"], bool_, index, zero)
    shifted = apply(OPS["add"], int64, index, extent)
    wrapped = apply(WHERE, int64, is_negative, shifted, index)
    inside = apply(OPS["minimum"], int64, wrapped, last)
    result = apply(OPS["maximum"], int64, inside, zero)
    result.flags |= CHECKED
    return result


implement("checked_index", _clipped, is_structural=True)
