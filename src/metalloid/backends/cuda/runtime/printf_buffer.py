"""What kernels said while they ran: messages for `logging`, and assertions that did not hold."""

from __future__ import annotations

import struct
from typing import NamedTuple

from metalloid.errors import KernelFault
from metalloid.runtime.messages import emit

#: report_block in report_nvptx.h.
_HEAD = struct.Struct("=IIII3I3I256s256s")
HEAD_BYTES = _HEAD.size
BLOCK_BYTES = HEAD_BYTES + 2**20
_NOTHING_SAID = bytes(16)


class Report(NamedTuple):
    """The head of the block.

    Attributes
    ----------
    used : int
        Bytes of messages.
    dropped : int
        Messages that found no room.
    failed : int
        Whether an assertion did not hold.
    """

    used: int
    dropped: int
    failed: int
    line: int
    threadgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    condition: str
    file: str


def read_head(head: bytes) -> Report | None:
    """What the first `HEAD_BYTES` of the block say; None if nobody said anything."""
    if head[:16] == _NOTHING_SAID:
        return None
    used, dropped, failed, line, gx, gy, gz, x, y, z, condition, file = _HEAD.unpack(head)
    texts = (text.split(b"\0")[0].decode("utf-8", "replace") for text in (condition, file))
    return Report(used, dropped, failed, line, (gx, gy, gz), (x, y, z), *texts)


def pass_on(report: Report, messages: bytes, kernel: str) -> None:
    """Hand messages to `logging`.

    Raises
    ------
    KernelFault
        If an assertion did not hold.
    """
    emit(messages, report.dropped, lambda _: kernel)
    if report.failed:
        reason = f"{report.file}:{report.line}: assertion failed: {report.condition}"
        raise KernelFault(
            f"[{kernel}] {reason}, in thread {report.thread} of threadgroup {report.threadgroup}.",
            kernel=kernel,
            reason=reason,
            threadgroup=report.threadgroup,
            thread=report.thread,
        )
