"""Checked launches by the vector form of a kernel, which finds out that they have no defects.

What it cannot tell, the exact engine looks at: the memory is restored first.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.faults import INTERRUPTED
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.compiler.bounds.table import pointer_slots
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size

_MAX_RANGES = 64  # abi.h
_DEVICE, _THREADGROUP = 0, 1
#: Contents of memory before a launch (abi.h, mtl_contents).
WRITTEN, _ZEROS, _NO_CONTENTS = range(3)
_MAX_UNIT_BITS = 2
#: The exact engine alone checks a kernel, until its launches have taken as long as the vector form
#: takes to compile, or a launch has so many threads.
MAX_EXACT_SECONDS, MANY_THREADS = 0.5, 4096
#: A kernel that has raised so many alarms of no defect is left to the exact engine.
_MAX_FALSE_ALARMS = 2


class _ShadowRange(ctypes.Structure):
    """Memory with shadow words (abi.h, mtl_shadow_range)."""

    _fields_ = (
        ("first", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("words", ctypes.c_void_p),
        ("unit_bits", ctypes.c_uint32),
        ("space", ctypes.c_uint32),
        ("contents", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    )


class _Memory(NamedTuple):
    """Memory that a launch may write to."""

    first: int
    end: int
    unit_bits: int

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.end - self.first


class FreshMemory(NamedTuple):
    """A buffer that nothing has written to."""

    first: int
    nbytes: int
    contents: int


#: Contents of memory before a launch. It is kept, as new memory costs more than the copy.
_contents = ctypes.create_string_buffer(1)


class FastChecks:
    """The vector form of a checked kernel.

    Parameters
    ----------
    compile_form : callable
        Compiles it; raises `Unsupported` if there is none.
    """

    def __init__(self, compile_form: Callable[[], CpuProgram]) -> None:
        self._compile_form = compile_form
        self._form: CpuProgram | None = None
        self._is_usable = True
        self._false_alarms = 0
        self._exact_seconds = 0.0

    def is_profitable(self, grid: Size) -> bool:
        """Whether a launch is worth the compilation of the vector form."""
        return self._exact_seconds >= MAX_EXACT_SECONDS or math.prod(grid) >= MANY_THREADS

    def run(self, arguments: Arguments, grid: Size, group: Size) -> float | None:
        """Run a launch; its seconds, or None if it has to run with the exact engine.

        Then the memory is what it was before.
        """
        form = self._usable_form()
        if form is None:
            return None
        fresh = fresh_memory(arguments)
        written = _written(form, arguments, fresh)
        if written is None:
            return None
        from metalloid.compiler.ir.types import Unsupported  # here, as few launches are checked

        try:
            job = form.job(arguments, grid, group)
        except Unsupported:  # of a variant
            self._is_usable = False
            return None
        runtime, outcome = native_library.runtime(), native_library.Outcome()
        unit_bits = max(form.shadow_unit, 1).bit_length() - 1
        nbytes = form.variable_bytes + arguments.threadgroup_bytes
        ranges = [_ShadowRange(0, nbytes, None, unit_bits, _THREADGROUP)]
        ranges += (
            _ShadowRange(m.first, m.nbytes, None, m.unit_bits, _DEVICE, _contents_of(m, fresh))
            for m in written
        )
        if not runtime.shadow_begin((_ShadowRange * len(ranges))(*ranges), len(ranges)):
            return None
        saved = _saved(written)
        status = runtime.run(job, outcome)
        if status == INTERRUPTED:
            raise runtime.interruption()
        if status == 0 and not runtime.shadow_end():
            return float(outcome.seconds)
        for memory in written:
            ctypes.memmove(memory.first, saved, memory.nbytes)
            saved += memory.nbytes
        return None

    def count_exact(self, seconds: float, is_false_alarm: bool) -> None:
        """Note a launch of the exact engine, and whether it has found nothing after an alarm."""
        self._exact_seconds += seconds
        self._false_alarms += is_false_alarm
        self._is_usable = self._is_usable and self._false_alarms < _MAX_FALSE_ALARMS

    def _usable_form(self) -> CpuProgram | None:
        if self._form is None and self._is_usable:
            from metalloid.compiler.ir.types import Unsupported

            self._is_usable = False
            with contextlib.suppress(Unsupported):
                form = self._compile_form()
                self._is_usable = _is_usable(form)
                form.can_fuse = False
                form.launch_flags = native_library.CHECKED
                self._form = form
        return self._form if self._is_usable else None


def _is_usable(form: CpuProgram) -> bool:
    """Whether launches of a kernel can be repeated, and their memory is known."""
    signature = form.signature
    return not (form.logs or signature.textures or pointer_slots(signature))


def fresh_memory(arguments: Arguments) -> list[FreshMemory]:
    """The buffers of a launch that nothing has written to."""
    return [
        FreshMemory(buffer.address, buffer.nbytes, _ZEROS if buffer.is_zeroed else _NO_CONTENTS)
        for buffer in arguments.buffers
        if buffer.is_fresh
    ]


def _contents_of(memory: _Memory, fresh: list[FreshMemory]) -> int:
    """The contents of memory before a launch."""
    for each in fresh:
        if memory.first < each.first + each.nbytes and each.first < memory.end:
            return each.contents
    return WRITTEN


def _written(
    form: CpuProgram, arguments: Arguments, fresh: list[FreshMemory]
) -> list[_Memory] | None:
    """The memory that a launch may write to.

    None if that is unknown or also read otherwise, and if reads that the form does not look at are
    of memory without contents.
    """
    written: list[_Memory] = []
    read: list[_Memory] = []
    for parameter in form.signature.buffers:
        word, layout = arguments.words[parameter.position], parameter.layout
        extent = arguments.extents.get(parameter.position)
        if extent is None:
            return None
        unit_bits = (layout.bytes & -layout.bytes).bit_length() - 1 if layout.bytes else 0
        memory = _Memory(word, word + extent, min(unit_bits, _MAX_UNIT_BITS))
        (read if layout.read_only else written).append(memory)
    joined = list(_joined(sorted(m for m in written if m.first < m.end)))
    if len(joined) >= _MAX_RANGES:
        return None
    if any(r.first < w.end and w.first < r.end for r in read for w in joined):
        return None
    if any(_contents_of(memory, fresh) != WRITTEN for memory in read):
        return None
    return joined


def _saved(memories: list[_Memory]) -> int:
    """The address of a copy of memory, valid until the next one."""
    global _contents
    required = sum(memory.nbytes for memory in memories)
    if required > len(_contents):
        _contents = ctypes.create_string_buffer(required)
    address = first = ctypes.addressof(_contents)
    for memory in memories:
        ctypes.memmove(address, memory.first, memory.nbytes)
        address += memory.nbytes
    return first


def _joined(memories: list[_Memory]) -> Iterator[_Memory]:
    """Memory in order, without overlaps, in whole units."""
    last: _Memory | None = None
    for first, end, unit_bits in memories:
        if last is not None and first < last.end:
            last = _Memory(last.first, max(last.end, end), min(last.unit_bits, unit_bits))
            continue
        if last is not None:
            yield last
        last = _Memory(first, end, unit_bits)
    if last is not None:
        yield last
