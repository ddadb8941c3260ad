"""Counts of launches: they run once more before, on copies of their memory, by code that counts.

Counts depend on what is in memory only where the control flow of a kernel does. So launches of one
kernel with the same grid and the same numbers are counted once.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from metalloid.errors import MetalloidError
from metalloid.profiler.records import Counts, LineCost, SourceLine
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.runtime.launch.launches import UNKNOWN_BYTES, Arguments, nanoseconds
from metalloid.runtime.launch.program import Program, Size

#: Launches with more memory, or that would take longer, are not counted.
MAX_BYTES = 2**30
MAX_SECONDS = 5.0
_ALIGNMENT = 256
#: Read-only arguments of at most so many bytes are parameters, on which the control flow depends.
_MAX_PARAMETER_BYTES = 512


class Counter:
    """Counts launches, each kind of them once.

    Attributes
    ----------
    thread : int
        The thread that compiles or runs code that counts; 0 if none does.
    """

    def __init__(self) -> None:
        self.thread = 0
        self._known: dict[Any, Counts | None] = {}
        self._programs: dict[Program, Any] = {}
        self._lock = threading.Lock()

    def count(
        self, device: Device, program: Program, arguments: Arguments, grid: Size, group: Size
    ) -> Counts | None:
        """The counts of a launch that has not run; None if they cannot be known."""
        with self._lock:
            self.thread = threading.get_ident()
            try:
                device.synchronize()
                memory = _Memory(device, program, arguments)
                key = program, grid, group, memory.parameters
                if key not in self._known:
                    self._known[key] = self._counted(program, memory, grid, group)
                return self._known[key]
            except (MetalloidError, MemoryError, _Uncountable):
                return None
            finally:
                self.thread = 0

    def _counted(self, program: Program, memory: _Memory, grid: Size, group: Size) -> Counts | None:
        try:
            counted = self._program(program)
            if 0 in grid or counted is None:
                return Counts(LineCost(), 0) if counted is not None else None
            blocks = counted.count(memory.copied(), grid, group)
        except (MetalloidError, MemoryError, _Uncountable):
            return None
        total, lines = LineCost(), dict[SourceLine, LineCost]()
        accessed: dict[int, tuple[int, int]] = {}
        for runs, block in blocks:
            for file, line, text, *costs in block["lines"]:
                cost = LineCost(*(runs * each for each in costs))
                total = total.plus(cost)
                at = SourceLine(file, line, text)
                lines[at] = lines.get(at, LineCost()).plus(cost)
            for position, loaded, stored in block["traffic"]:
                before = accessed.get(position, (0, 0))
                accessed[position] = before[0] + runs * loaded, before[1] + runs * stored
        return Counts(total, memory.traffic(accessed), lines)

    def _program(self, program: Program) -> Any:
        """The program that counts; None if there is none."""
        if program not in self._programs:
            self._programs[program] = None
            if program.origin is not None:
                cpu: Any = get_device("cpu")
                self._programs[program] = cpu.counted(*program.origin)
        return self._programs[program]


class _Uncountable(Exception):
    """The memory of a launch cannot be copied: textures, and pointers in structs."""


class _Memory:
    """The memory of a launch.

    Attributes
    ----------
    parameters : tuple
        What the control flow may depend on.
    nbytes : int
        Of all arguments.
    """

    def __init__(self, device: Device, program: Program, arguments: Arguments) -> None:
        signature = program.signature
        if signature.textures or arguments.pointees or arguments.pointers:
            raise _Uncountable
        self._device, self._arguments = device, arguments
        self._constants = dict(arguments.constants)
        self._host = {m.position: m for m in arguments.staged}
        self._extents: dict[int, int] = {}
        self.nbytes = 0
        parameters: list[bytes | int] = []
        for parameter in signature.buffers:
            position = parameter.position
            extent = self._extent(position)
            self._extents[position] = extent
            self.nbytes += extent
            is_small = parameter.layout.read_only and extent <= _MAX_PARAMETER_BYTES
            parameters.append(self._contents(position).tobytes() if is_small else extent)
        self.parameters = tuple(parameters)

    def traffic(self, accessed: dict[int, tuple[int, int]]) -> int:
        """Bytes that memory must deliver and take, from those loaded and stored by position."""
        return sum(
            min(nbytes, self._extents.get(position, self.nbytes))
            for position, both in accessed.items()
            for nbytes in both
        )

    def _extent(self, position: int) -> int:
        if position in self._constants:
            return len(self._constants[position])
        if position in self._host:
            return self._host[position].nbytes
        extent = self._arguments.extents.get(position, UNKNOWN_BYTES)
        if extent > MAX_BYTES:
            raise _Uncountable
        return extent

    def _contents(self, position: int) -> np.ndarray:
        """A copy of the memory of an argument."""
        nbytes = self._extents[position]
        raw = np.zeros(nbytes + _ALIGNMENT, np.uint8)
        shift = -raw.ctypes.data % _ALIGNMENT
        copy = raw[shift : shift + nbytes]
        word = self._arguments.words[position]
        if position in self._constants:
            copy[:] = np.frombuffer(self._constants[position], np.uint8)
        elif position in self._host:
            ctypes.memmove(copy.ctypes.data, self._host[position].address, nbytes)
        elif self._device.memory == "host":
            ctypes.memmove(copy.ctypes.data, word, nbytes)
        elif nbytes:
            self._device.copy_out(word, copy.data)
        return copy

    def copied(self) -> Arguments:
        """The arguments of the same launch on copies."""
        if self.nbytes > MAX_BYTES:
            raise _Uncountable
        arguments = Arguments(len(self._arguments.words))
        arguments.words = [*self._arguments.words]
        arguments.threadgroup_bytes = self._arguments.threadgroup_bytes
        arguments.extents = dict(self._extents)
        arguments.limit_ns = nanoseconds(MAX_SECONDS)
        for position in self._extents:
            copy = self._contents(position)
            arguments.words[position] = copy.ctypes.data
            arguments.keep_alive.append(copy)
        return arguments
