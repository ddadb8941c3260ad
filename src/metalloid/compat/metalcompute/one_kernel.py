"""The functions of metalcompute 0.1: one kernel, one input, one output, for the whole process."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from metalloid.compat.memory import SharedMemory, bytes_of
from metalloid.compat.metalcompute import failure
from metalloid.compat.metalcompute.device import open_device
from metalloid.compat.metalcompute.failure import error
from metalloid.compat.metalcompute.function import Launcher


@dataclass
class _State:
    device: Any = None
    launch: Launcher | None = None
    memories: list[SharedMemory] | None = None


_state = _State()


def init(*device_index: Any) -> None:
    """Open a device: the default one, or that of an index.

    Raises
    ------
    error
        If there is none.
    """
    device = open_device(device_index, "<built-in function init>")
    release()
    _state.device = device


def release() -> None:
    """Forget the device, the kernel and its memory."""
    _state.device = _state.launch = _state.memories = None


def compile(program: str, function_name: str, /) -> None:
    """Compile the kernel to run.

    Raises
    ------
    error
        With what the compiler said, or if there is no such function.
    """
    failure.text(program, 1)
    failure.text(function_name, 2)
    if _state.device is None:
        raise error("Not ready to compile")
    library = failure.library(program, _state.device)
    _state.launch = Launcher(failure.function(library, function_name, "Failed to find function"))
    _state.memories = None


def run(input: Any, output: Any, count: int, /) -> None:
    """Copy the input in, run `count` threads, copy the output out.

    Parameters
    ----------
    input, output : buffer of float or of bytes
        For ``[[buffer(0)]]`` and ``[[buffer(1)]]``.
    count : int

    Raises
    ------
    error
    """
    threads = operator.index(count)
    source, destination = bytes_of(input), bytes_of(output)
    if source is None:
        raise error("Unsupported input format")
    if destination is None or not destination.flags.writeable or not _is_known(output):
        raise error("Unsupported output format")
    if not _is_known(input):
        raise error("Unsupported input format")
    if _state.launch is None:
        raise error("Not ready to compute")
    if not source.nbytes:
        raise error("Failed to make input buffer")
    if not destination.nbytes:
        raise error("Failed to make output buffer")
    memories = [SharedMemory(a.nbytes, _state.device) for a in (source, destination)]
    memories[0].bytes[: source.nbytes] = source
    _state.memories = memories
    rerun(threads)
    destination[...] = memories[1].bytes[: destination.nbytes]


def rerun(count: int, /) -> None:
    """Run the same again on the same memory; nothing is copied out.

    Raises
    ------
    error
        Before a run.
    """
    threads = operator.index(count)
    if _state.launch is None or _state.memories is None:
        raise error("Not ready to run")
    _state.launch(threads, _state.memories, True)


def _is_known(value: Any) -> bool:
    return memoryview(value).format in ("f", "B")
