"""Failed accesses that kernels on GPUs record (fault_record.h), in kernels with checks."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import NamedTuple

from metalloid.compiler.bounds.table import BoundsTable
from metalloid.errors import KernelFault, MetalloidError
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.outside import describe_site, outside_error

_RECORD = struct.Struct("=3I4x3I3IqQ")
RECORD_BYTES = 64


class RecordedFault(NamedTuple):
    """The first access of a launch that failed.

    Attributes
    ----------
    others : int
        How many more threads had one.
    site : int
        Index in the table of checks.
    threadgroup, thread : tuple of int
    offset, extent : int
        Of the site and of its object, in bytes.
    """

    others: int
    site: int
    threadgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    offset: int
    extent: int


def read_record(memory: bytes) -> RecordedFault | None:
    """The failed access of a record; None if there was none."""
    failed, others, site, gx, gy, gz, x, y, z, offset, extent = _RECORD.unpack_from(memory)
    if not failed:
        return None
    return RecordedFault(others, site, (gx, gy, gz), (x, y, z), offset, extent)


def error_of(
    fault: RecordedFault,
    signature: Signature,
    table: BoundsTable,
    with_lines: Callable[[], BoundsTable],
) -> KernelFault:
    """The exception of a launch with a failed access.

    Parameters
    ----------
    table : BoundsTable
        Of the kernel's checks.
    with_lines : callable
        Compiles the kernel for a table with the lines of its accesses.
    """
    with contextlib.suppress(MetalloidError):  # such as on a full disk
        table = with_lines()
    description = describe_site(signature, table.sites[fault.site], fault.offset, fault.extent)
    return outside_error(signature.name, description, fault.threadgroup, fault.thread, fault.others)
