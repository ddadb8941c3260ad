"""Log messages of kernels (``os_log``), as records of Python's `logging`."""

from __future__ import annotations

import logging
import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: Parent of the loggers; a kernel's subsystem and category name a child.
LOGGER = "metalloid.kernels"

#: By Metal's log_type: debug, info, default, error, fault.
_LEVELS = (logging.DEBUG, logging.INFO, logging.INFO, logging.ERROR, logging.CRITICAL)

_HEAD = struct.Struct("=IIQ3I3III")  # report.c, message
_VALUE = struct.Struct("=cB6x8s")
_KINDS = {b"i": "=q", b"u": "=Q", b"f": "=d"}
_DIRECTIVE = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d+)?"
    r"(?:v(?P<lanes>\d+))?(?:hh|hl|h|ll|l|j|z|t|L)?(?P<letter>[diouxXeEfFgGaAcspP%])"
)

Scalar = int | float | str


@dataclass(frozen=True)
class Message:
    """One message of a kernel.

    Attributes
    ----------
    entry : int
        Address of the kernel's code.
    type : int
        Metal's ``log_type``.
    threadgroup, thread : tuple of int
        Position of the threadgroup in the grid, and of the thread in it.
    subsystem, category : str
        Empty for ``os_log_default``.
    text : str
    """

    entry: int
    type: int
    threadgroup: tuple[int, int, int]
    thread: tuple[int, int, int]
    subsystem: str
    category: str
    text: str


def decode(block: bytes) -> Iterator[Message]:
    """The messages in the log buffer of a device."""
    start = 0
    while start < len(block):
        size, type_, entry, gx, gy, gz, tx, ty, tz, count, _ = _HEAD.unpack_from(block, start)
        values_start = start + _HEAD.size
        texts = iter(block[values_start + count * _VALUE.size : start + size].split(b"\0"))
        subsystem, category, form = (_text(next(texts)) for _ in range(3))
        values: list[list[Scalar]] = []
        for number in range(count):
            kind, lanes, word = _VALUE.unpack_from(block, values_start + number * _VALUE.size)
            if lanes:
                values.append([])
            scalar = _text(next(texts)) if kind == b"s" else struct.unpack(_KINDS[kind], word)[0]
            values[-1].append(scalar)
        text = format_message(form, values)
        yield Message(entry, type_, (gx, gy, gz), (tx, ty, tz), subsystem, category, text)
        start += size


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def format_message(form: str, values: list[list[Scalar]]) -> str:
    """Format `values` by `form`, as C's printf.

    Vectors are ``%v4f`` and the like, as in OpenCL. A value of another type than its directive is
    formatted by its own type; a directive without a value stays.
    """
    given = iter(values)

    def shown(match: re.Match[str]) -> str:
        letter = match["letter"]
        if letter == "%":
            return "%"
        lanes = next(given, None)
        if lanes is None:
            return match[0]
        plain = f"%{match['flags']}{match['width']}{match['precision'] or ''}"
        return ",".join(_scalar(plain, letter, lane) for lane in lanes)

    return _DIRECTIVE.sub(shown, form)


def _scalar(plain: str, letter: str, value: Scalar) -> str:
    if isinstance(value, str) or letter == "s":
        return (plain + "s") % str(value)
    if letter in "aA":
        text = float(value).hex()
        return text.upper() if letter == "A" else text
    if letter == "c":
        return chr(int(value) & 0xFF)
    if letter in "eEfFgG":
        return (plain + letter) % value
    if isinstance(value, float):
        return repr(value)
    if letter in "pP":
        return hex(value)
    if letter in "ouxX" and value < 0:
        value &= 2**64 - 1 if value < -(2**31) else 2**32 - 1
    return (plain + letter) % value


def _log(logger: logging.Logger, level: int, text: str, *values: object, **more: Any) -> None:
    """Log a message; show it on standard error if the program has not configured `logging`.

    Python's last resort shows warnings only; this shows messages from INFO on. Levels that the
    program has set for the logger or its parents apply.
    """
    if logger.hasHandlers():
        logger.log(level, text, *values, **more)
        return
    root = logging.getLogger()
    threshold, above = logging.INFO, logger
    while above is not root and above.parent is not None:
        if above.level:
            threshold = above.level
            break
        above = above.parent
    if level >= threshold and level > root.manager.disable:
        print(text % values, file=sys.stderr)


def emit(block: bytes, dropped: int, name_of: Callable[[int], str]) -> None:
    """Log the messages of `block`.

    Records carry ``kernel``, ``kernel_threadgroup`` and ``kernel_thread`` as attributes.

    Parameters
    ----------
    block : bytes
        The log buffer of a device.
    dropped : int
        Number of messages that did not fit.
    name_of : callable
        Name of a kernel by the address of its code.
    """
    for message in decode(block):
        kernel = name_of(message.entry)
        names = filter(None, (LOGGER, message.subsystem, message.category))
        _log(
            logging.getLogger(".".join(names)),
            _LEVELS[min(message.type, len(_LEVELS) - 1)],
            "[%s] %s (thread %s of threadgroup %s)",
            *(kernel, message.text, message.thread, message.threadgroup),
            extra={
                "kernel": kernel,
                "kernel_threadgroup": message.threadgroup,
                "kernel_thread": message.thread,
            },
        )
    if dropped:
        logging.getLogger(LOGGER).warning(
            "%d messages of kernels were dropped: a launch may log 1 MiB.", dropped
        )
