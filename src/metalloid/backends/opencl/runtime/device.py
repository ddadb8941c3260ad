"""OpenCL's devices: GPUs of every maker, and CPUs, that take SPIR-V."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from metalloid.backends.opencl.compile.compile_spirv import (
    SpirvKernel,
    bounds_with_lines,
    compile_spirv,
)
from metalloid.backends.opencl.compile.target import spirv_target
from metalloid.backends.opencl.runtime.events import OpenclEvent
from metalloid.backends.opencl.runtime.geometry import sub_grids
from metalloid.backends.opencl.runtime.memory import Heap
from metalloid.backends.opencl.runtime.platforms import binding, functions, usable_devices
from metalloid.backends.opencl.runtime.program import OpenclProgram
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import KernelFault, LaunchError
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device, DeviceInfo
from metalloid.runtime.devices.traits import MANY_THREADS
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.printf_buffer import BUFFER_BYTES, HEAD_BYTES, deliver, read_head
from metalloid.runtime.launch.program import Size
from metalloid.runtime.launch.recorded_faults import RECORD_BYTES, read_record
from metalloid.runtime.memory.constants import Constants
from metalloid.runtime.memory.staging import Block, blocks_of, contents, point_words

_MAX_IN_FLIGHT = 256
_SVM_POINTERS = 0x11B6  # CL_KERNEL_EXEC_INFO_SVM_PTRS
_ROUNDING = "-cl-fp32-correctly-rounded-divide-sqrt"


class OpenclDevice(Device):
    """A device of OpenCL, by one queue in order."""

    memory = "own"
    by_default = False
    can_check_accesses = True
    traits = MANY_THREADS

    def __init__(self, index: int) -> None:
        cl = binding()
        self.name = f"opencl:{index}"
        self.handle = handle = usable_devices()[index]
        self.target = spirv_target()
        self.has_float64 = "cl_khr_fp64" in handle.extensions.split()
        is_exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT & handle.single_fp_config
        self._options = _ROUNDING if is_exact else ""
        self._context = cl.Context([handle])
        timing = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, handle, properties=timing)
        capabilities, kinds = handle.svm_capabilities, cl.device_svm_capabilities
        self._is_system = bool(capabilities & kinds.FINE_GRAIN_SYSTEM)
        self.heap = Heap(self._context, self._queue, bool(capabilities & kinds.FINE_GRAIN_BUFFER))
        self._lock = threading.RLock()
        self._in_flight: deque[OpenclEvent] = deque(maxlen=_MAX_IN_FLIGHT)
        arena = self.heap.allocate(Constants.ARENA_BYTES)
        self._constants = Constants(arena, self._write_constant)
        self._report_block = self._fault_record = 0
        self._is_forked = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._is_forked = True

    def info(self) -> DeviceInfo:
        """See `Device.info`."""
        handle = self.handle
        return DeviceInfo(
            self.name,
            f"{handle.name.strip()}, {handle.platform.name.strip()}, {handle.version.strip()}",
            int(handle.global_mem_size),
            int(handle.max_compute_units),
        )

    def details(self) -> dict[str, str]:
        """See `Device.details`."""
        handle = self.handle
        return {
            "driver": handle.driver_version,
            "SPIR-V": handle.il_version,
            "shared virtual memory": str(int(handle.svm_capabilities)),
            "threadgroup memory": f"{handle.local_mem_size} bytes",
            "threads of a threadgroup": str(handle.max_work_group_size),
            "largest buffer": f"{handle.max_mem_alloc_size} bytes",
        }

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OpenclProgram:
        """See `Device.compile`."""

        def with_shape(is_row: bool) -> SpirvKernel:
            return compile_spirv(unit, entry, constants, self.target, shared_cache(), is_row)

        def with_lines() -> BoundsTable:
            return bounds_with_lines(unit, entry, constants, self.target, shared_cache())

        return OpenclProgram(
            with_shape, with_lines, entry, self.target, self._context, self.handle, self._options
        )

    def allocate(self, nbytes: int) -> int:
        """See `Device.allocate`."""
        address = self.heap.allocate(nbytes)
        self.heap.fill(address, nbytes)
        return address

    def free(self, address: int, nbytes: int) -> None:
        """See `Device.free`."""
        if not self._is_forked:
            self.heap.free(address)

    def copy_in(self, address: int, source: memoryview) -> None:
        """See `Device.copy_in`."""
        self.heap.write(address, source)

    def copy_out(self, address: int, destination: memoryview) -> None:
        """See `Device.copy_out`."""
        self.heap.read(address, destination)

    def _write_constant(self, address: int, value: bytes) -> None:
        self.heap.write(address, memoryview(value))

    def launch(
        self, program: OpenclProgram, arguments: Arguments, grid: Size, group: Size, wait: bool
    ) -> Event:
        """See `Device.launch`."""
        if self._is_forked:
            raise LaunchError(
                f"[{self.name}] OpenCL does not survive a fork. Start the process by another "
                "method: multiprocessing.set_start_method('spawn')."
            )
        if 0 in grid:
            return FinishedEvent(0.0)
        with self._lock:
            for buffer in arguments.buffers:
                if buffer.host_copy is not None:
                    buffer.host_copy.to_device()
            if program.is_checked and arguments.fault_record is None:
                self._fault_record = self._fault_record or self.allocate(RECORD_BYTES)
                arguments.fault_record = (*program.extents(arguments), self._fault_record)
            for position, value in arguments.constants:
                arguments.words[position] = self._constants[value]
            blocks = self._copy_to_device(arguments)
            try:
                event = self._enqueue(program, arguments, blocks, grid, group)
                if program.reports:
                    self._flush_report(event, program.name)
                if program.is_checked:
                    self._take_fault(event, program)
                self._in_flight.append(event)  # other threads may end it from here on
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
        cl, kernel = binding(), program.handle(group)
        if program.reports and not self._report_block:
            self._report_block = self.allocate(BUFFER_BYTES)
        handles, words = [], (*arguments.words, *(arguments.fault_record or ()))
        try:
            if not self._is_system:
                self._name_memory(kernel, arguments, blocks)
            kernel.set_arg(1, cl.LocalMemory(max(arguments.threadgroup_bytes, 16)))
            for sub_grid in sub_grids(grid, group):
                data = program.launch_data(words, self._report_block, sub_grid)
                kernel.set_arg(0, data)
                handles.append(
                    cl.enqueue_nd_range_kernel(
                        self._queue, kernel, sub_grid.work_items, sub_grid.group
                    )
                )
        except cl.Error as error:
            raise LaunchError(f"[{program.name}] {self.name} cannot launch it: {error}") from None
        return OpenclEvent(program, arguments, handles)

    def _name_memory(self, kernel: Any, arguments: Arguments, blocks: list[Block]) -> None:
        """Tell the driver which memory a launch may use, as its kernel has no pointers to it."""
        used = {block.address - block.shift for block in blocks}
        used |= {buffer.address for buffer in arguments.buffers}
        used |= {self._constants.address, self._report_block, self._fault_record} - {0}
        pointers = (ctypes.c_void_p * len(used))(*used)
        status = functions().clSetKernelExecInfo(
            ctypes.c_void_p(kernel.int_ptr), _SVM_POINTERS,
            ctypes.c_size_t(ctypes.sizeof(pointers)), pointers,
        )  # fmt: skip
        if status:
            raise LaunchError(f"[{self.name}] clSetKernelExecInfo failed: {status}.")

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

    def _take_fault(self, event: OpenclEvent, program: OpenclProgram) -> None:
        """Let a launch fail if an access of it did."""
        record = bytearray(RECORD_BYTES)
        self.heap.read(self._fault_record, memoryview(record))
        fault = read_record(bytes(record))
        if fault is not None:
            self.heap.write(self._fault_record, memoryview(bytes(RECORD_BYTES)))
            if not event.has_failed:  # by an assertion
                event.fail(program.fault(fault))

    def synchronize(self) -> None:
        """See `Device.synchronize`."""
        self._queue.finish()
        self.settle()

    def settle(self, seconds: float = 0.0) -> None:
        """See `Device.settle`."""
        while self._in_flight and self._in_flight[0].end(seconds):
            self._in_flight.popleft()


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
