"""OpenCL's devices: GPUs of every maker, and CPUs, that take SPIR-V."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from metalloid.backends.opencl.compile.compile_spirv import (
    Form,
    SpirvKernel,
    bounds_with_lines,
    compile_spirv,
)
from metalloid.backends.opencl.runtime.events import OpenclEvent
from metalloid.backends.opencl.runtime.fast_launch import fast_launch
from metalloid.backends.opencl.runtime.platforms import binding, usable_devices
from metalloid.backends.opencl.runtime.program import MIN_THREADGROUP_BYTES, OpenclProgram
from metalloid.backends.opencl.runtime.queue_device import QueueDevice
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import KernelFault
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.traits import MANY_THREADS
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import Arguments, FastLaunch, PlainParameter
from metalloid.runtime.launch.printf_buffer import BUFFER_BYTES, HEAD_BYTES, deliver, read_head
from metalloid.runtime.launch.program import Size
from metalloid.runtime.memory.staging import Block, blocks_of, contents, point_words

_ROUNDING = "-cl-fp32-correctly-rounded-divide-sqrt"
#: The variable with more options for the platform's compiler.
_OPTIONS = "METALLOID_OPENCL_OPTIONS"


class OpenclDevice(QueueDevice):
    """A device of OpenCL, by one queue in order."""

    can_check_accesses = True
    traits = MANY_THREADS

    def __init__(self, index: int) -> None:
        super().__init__(index)
        exact = binding().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        rounding = _ROUNDING if exact & self.handle.single_fp_config else ""
        self._options = f"{rounding} {os.environ.get(_OPTIONS, '')}".strip()
        self._report_block = 0

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OpenclProgram:
        """See `Device.compile`."""

        def with_form(form: Form) -> SpirvKernel:
            return compile_spirv(unit, entry, constants, self.target, shared_cache(), form)

        def with_lines() -> BoundsTable:
            return bounds_with_lines(unit, entry, constants, self.target, shared_cache())

        return OpenclProgram(
            with_form, with_lines, entry, self.target, self._context, self.handle, self._options,
            self.fault_records,
        )  # fmt: skip

    def fast_launcher(
        self, program: Any, parameters: Sequence[PlainParameter], sizes: Mapping[Any, Any]
    ) -> FastLaunch | None:
        """See `Launcher.fast_launcher`."""
        return fast_launch(self, program, parameters, sizes)

    def launch(
        self, program: OpenclProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        self.require_usable()
        if 0 in grid:
            return FinishedEvent(0.0)
        with self.lock:
            for buffer in arguments.buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            program.add_record(arguments)
            for position, value in arguments.constants:
                arguments.words[position] = self.constants[value]
            blocks = self._copy_to_device(arguments)
            try:
                event = self._enqueue(program, arguments, blocks, grid, group)
                if program.reports:
                    self._flush_report(event, program.name)
                if any(block.written for block in blocks):
                    event.end()
                    self._copy_back(blocks)
            finally:
                for block in blocks:
                    self.heap.free(block.address - block.shift)
        return event.wait() if wait else event

    def _enqueue(
        self,
        program: OpenclProgram,
        arguments: Arguments,
        blocks: list[Block],
        grid: Size,
        group: Size,
    ) -> OpenclEvent:
        if program.reports and not self._report_block:
            self._report_block = self.allocate(BUFFER_BYTES)
        words = program.pack_words(arguments)
        pointers: Collection[int] = () if self.is_system else self._memory_of(arguments, blocks)
        threadgroup_bytes = max(arguments.threadgroup_bytes, MIN_THREADGROUP_BYTES)
        events: list[Any] = []
        event = OpenclEvent(self, program, arguments, events)
        for shape in program.shapes[grid, group]:
            status = self.native.launch(
                shape, self.queue_handle, threadgroup_bytes, self._report_block, words, pointers,
                events,
            )  # fmt: skip
            if status:
                raise self.failure(status, program.name)
        return event

    def _memory_of(self, arguments: Arguments, blocks: list[Block]) -> set[int]:
        """The memory that a launch may use, for the driver: its kernel has no pointers to it."""
        used = {block.address - block.shift for block in blocks}
        used |= {buffer.address for buffer in arguments.buffers}
        used |= {self.constants.address, self._report_block}
        if arguments.fault_record is not None:
            used.add(arguments.fault_record.words[-1])
        return used - {0}

    def _copy_to_device(self, arguments: Arguments) -> list[Block]:
        blocks = blocks_of(arguments.staged)
        for block in blocks:
            block.address = self.heap.allocate(block.shift + block.nbytes) + block.shift
        for block in blocks:
            self.heap.write(block.address, memoryview(contents(block, arguments, blocks)))
        point_words(arguments, blocks)
        return blocks

    def _copy_back(self, blocks: list[Block]) -> None:
        for block in blocks:
            for written in block.written:
                host = (ctypes.c_char * written.nbytes).from_address(written.address)
                source = block.address + written.address - block.start
                self.heap.read(source, memoryview(host))

    def _flush_report(self, event: OpenclEvent, kernel: str) -> None:
        """Deliver the messages of a launch; it fails if an assertion did."""
        head = bytearray(HEAD_BYTES)
        self.heap.read(self._report_block, memoryview(head))
        fields = read_head(bytes(head))
        if fields is None:
            return
        messages = bytearray(fields.used)
        self.heap.read(self._report_block + HEAD_BYTES, memoryview(messages))
        self.heap.write(self._report_block, memoryview(bytes(HEAD_BYTES)))
        try:
            deliver(fields, bytes(messages), kernel)
        except KernelFault as fault:
            event.fail(fault)


def count_devices() -> int:
    """The number of devices that can run kernels.

    Raises
    ------
    DeviceUnavailable
        Without pyopencl, or a device.
    """
    return len(usable_devices())


def open_device(index: int) -> OpenclDevice:
    """A device."""
    return OpenclDevice(index)
