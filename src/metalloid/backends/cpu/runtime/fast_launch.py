"""The fast launch path: native/python/fast_launch.c binds and runs usual launches."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import Cache
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import NATIVE_BINDERS, Arguments, FastLaunch, PlainParameter
from metalloid.runtime.launch.number_types import INTEGERS, OTHER_NUMBERS
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

_SOURCES, _NAME = native_library.SOURCES / "python", "fast-launch"
_HEADERS = (native_library.SOURCES, native_library.HEADERS)
_HEAD, _PARAMETER = struct.Struct("=10Q"), struct.Struct("=4Q2I2Q")
_MAX_WORDS = 32


class _Plan(NamedTuple):
    """All that fast_launch.c needs to know of a kernel, in the order of its `enum`."""

    head: bytes
    sizes: Mapping[Any, Any]
    jobs: Mapping[Any, bytes]
    device: Device
    settings: Any
    array: type
    integers: tuple[type, ...]
    other_numbers: tuple[type, ...]
    dtypes: tuple[np.dtype[Any] | None, ...]
    event: type
    fail: Callable[[bytes, Any, Any], NoReturn]
    buffer: type
    binders: Mapping[Any, Any]
    queued: Callable[..., Event]


def prebuilt(cache: Cache, target: str) -> dict[str, bytes]:
    """The library for a target of zig, by the digest of its sources."""
    headers = (*_HEADERS, native_build.OF_PYTHON)
    path = native_build.build(_SOURCES, _NAME, cache, headers, target=target)
    key = native_build.sources_digest(_SOURCES, _NAME, headers, target=target)
    return {key: path.read_bytes()}


@functools.cache
def _library() -> Any:
    """The library of the sources, compiled once per machine; None where it is not available."""
    library = native_build.load_python_library(_SOURCES, _NAME, _HEADERS)
    if library is not None:
        for function in (library.mtl_fast_launch, library.mtl_queued_outcome):
            function.argtypes, function.restype = (ctypes.py_object,), ctypes.py_object
    return library


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def queued_outcome() -> Callable[[int], float | bytes | None] | None:
    """A native function from the ticket of a queued launch to its outcome.

    It returns None if the launch is still running, its seconds, or the outcome of a failed launch.
    After that, the ticket is unknown.
    """
    library, runtime = _library(), native_library.runtime()
    if library is None:
        return None
    functions = struct.pack("=2Q", _address(runtime.done), _address(runtime.wait))
    outcome_of: Callable[[int], float | bytes | None] = library.mtl_queued_outcome(functions)
    return outcome_of


def general_arguments(program: CpuProgram, memory: bytes, args: tuple[Any, ...]) -> Arguments:
    """The arguments of a queued launch for the general path.

    Parameters
    ----------
    memory : bytes
        Numbers, and the words of the launch.
    """
    count = len(program.signature.sources)
    arguments = Arguments(0)
    arguments.words = list(struct.unpack(f"={count}Q", memory[len(memory) - 8 * count :]))
    arguments.buffers = [value for value in args if isinstance(value, Buffer)]
    return arguments


def fast_launch(
    device: Device,
    program: CpuProgram,
    parameters: Sequence[PlainParameter],
    sizes: Mapping[Any, Any],
    queued: Callable[..., Event],
    emit_messages: Callable[[], None],
) -> FastLaunch | None:
    """See `Launcher.fast_launcher`.

    Parameters
    ----------
    queued : callable
        From the ticket, the memory, the arguments and the sizes of a launch to its event.
    emit_messages : callable
        Hands what kernels have logged so far to `logging`.
    """
    words = len(program.signature.sources)
    if device.memory != "host" or words > _MAX_WORDS or program.slots:
        return None
    library, runtime = _library(), native_library.runtime()
    if library is None:
        return None
    proof = program.proof
    functions = (runtime.run, runtime.submit, runtime.wait, runtime.is_inside, runtime.is_idle)
    ranges = proof.address if proof is not None and proof.is_needed else 0
    head = _HEAD.pack(
        *map(_address, functions), ranges, words, words if proof is not None else 0,
        len(parameters), program.waits,
    )  # fmt: skip
    for p in parameters:
        kind = ord(p.number) if p.number else 0
        head += _PARAMETER.pack(
            p.position, p.bytes, p.least_bytes, p.alignment, kind, p.number_bytes, p.writes,
            proof is not None and p.position in proof.arguments,
        )  # fmt: skip

    def fail(block: bytes, threads: Any, group_size: Any) -> NoReturn:
        grid, group = sizes[threads, group_size]
        outcome = native_library.Outcome.from_buffer_copy(block)
        if program.logs:
            emit_messages()
        raise program.failure(outcome, grid, group)

    plan = _Plan(
        head=head,
        sizes=sizes,
        jobs=program.jobs,
        device=device,
        settings=settings,
        array=np.ndarray,
        integers=INTEGERS,
        other_numbers=OTHER_NUMBERS,
        dtypes=tuple(p.dtype for p in parameters),
        event=FinishedEvent,
        fail=fail,
        buffer=Buffer,
        binders=NATIVE_BINDERS,
        queued=queued,
    )
    launch: FastLaunch = library.mtl_fast_launch(plan)
    if not program.logs:
        return launch

    def launch_and_log(
        arguments: tuple[Any, ...], threads: Any, size: Any, wait: bool | None
    ) -> Event | None:
        event = launch(arguments, threads, size, wait)
        if event is not None:
            emit_messages()
        return event

    return launch_and_log
