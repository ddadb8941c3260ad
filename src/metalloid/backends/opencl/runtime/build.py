"""Machine code of kernels, which the platform compiles from SPIR-V, in the cache."""

from __future__ import annotations

import ctypes
from typing import Any

from metalloid.backends.opencl.compile.compile_spirv import SpirvKernel
from metalloid.backends.opencl.runtime.platforms import (
    binding,
    compiles_without_optimizing,
    functions,
)
from metalloid.compiler.toolchain.cache import digest, shared_cache
from metalloid.errors import LaunchError

#: Of a module. Intel's compiler for CPUs takes from 10 to several 100 seconds for larger ones, and
#: a tenth of that without optimisations.
_MAX_OPTIMIZED_BYTES = 80_000


def build(kernel: SpirvKernel, context: Any, device: Any, options: str) -> Any:
    """The program of a kernel, compiled or from the cache.

    Raises
    ------
    LaunchError
        If the platform refuses it.
    """
    cl = binding()
    if len(kernel.module) > _MAX_OPTIMIZED_BYTES and compiles_without_optimizing(device):
        options += " -cl-opt-disable"
    platform = (device.name, device.version, device.driver_version, device.platform.version)
    key = digest("opencl", kernel.key, kernel.module, options, *platform)
    files = shared_cache().load(key)
    if files is not None:
        program = cl.Program(context, [device], [files["binary"].read_bytes()])
        if not _build(program, options):
            return program
    program = cl.Program(context, kernel.module)
    if status := _build(program, options):
        log = program.get_build_info(device, cl.program_build_info.LOG)
        raise LaunchError(f"[opencl] clBuildProgram reports {status}: {log[:2000]}")
    binary = program.get_info(cl.program_info.BINARIES)[0]
    if binary:
        shared_cache().save(key, {"binary": binary})
    return program


def _build(program: Any, options: str) -> int:
    """Build a program; the status. pyopencl's own method warns of every message."""
    handle = ctypes.c_void_p(program.int_ptr)
    return int(functions().clBuildProgram(handle, 0, None, options.encode(), None, None))
