"""The device printf buffer: messages of kernels for `logging`, and failed assertions."""

from __future__ import annotations

import struct
from typing import NamedTuple

from metalloid.errors import KernelFault
from metalloid.runtime.launch.log_messages import emit

#: report_block in report_types.h.
_HEAD = struct.Struct("=IIII3I3I256s256s")
HEAD_BYTES = _HEAD.size
BUFFER_BYTES = HEAD_BYTES + 2**20
_EMPTY = bytes(16)


class PrintfHead(NamedTuple):
    """The head of the buffer.

    Attributes
    ----------
    used : int
        Bytes of messages.
    dropped : int
        Messages that did not fit.
    failed : int
        Whether an assertion failed.
    """

    used: int
    dropped: int
    failed: int
    line: int
    threadgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    condition: str
    file: str


def read_head(head: bytes) -> PrintfHead | None:
    """Parse the first `HEAD_BYTES` of the buffer; None if it is empty."""
    if head[:16] == _EMPTY:
        return None
    used, dropped, failed, line, gx, gy, gz, x, y, z, condition, file = _HEAD.unpack(head)
    texts = (text.split(b"\0")[0].decode("utf-8", "replace") for text in (condition, file))
    return PrintfHead(used, dropped, failed, line, (gx, gy, gz), (x, y, z), *texts)


def deliver(head: PrintfHead, messages: bytes, kernel: str) -> None:
    """Pass messages to `logging`, and raise a failed assertion.

    Raises
    ------
    KernelFault
        If an assertion failed.
    """
    emit(messages, head.dropped, lambda _: kernel)
    if head.failed:
        reason = f"{head.file}:{head.line}: assertion failed: {head.condition}"
        raise KernelFault(
            f"[{kernel}] {reason}, in thread {head.thread} of threadgroup {head.threadgroup}.",
            kernel=kernel,
            reason=reason,
            threadgroup=head.threadgroup,
            thread=head.thread,
        )
