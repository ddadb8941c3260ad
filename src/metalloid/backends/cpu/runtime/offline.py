"""CPUs as offline targets: kernels are compiled for them, and run elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from metalloid.backends.cpu.compile.bundle import bundle_files
from metalloid.backends.cpu.compile.compiled_kernel import CompiledKernel
from metalloid.backends.cpu.compile.engines import KernelRequest, compile_kernel
from metalloid.backends.cpu.host import cpu_target
from metalloid.backends.cpu.runtime import fast_launch, native_library
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import DeviceUnavailable
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import build_signature
from metalloid.runtime.devices.offline import OfflineDevice
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP, Program, Size, spread
from metalloid.settings import settings

_TARGETS = {
    "x86-64-v2": cpu_target("x86_64", ["-march=x86-64-v2"], "SSE4.2"),
    "x86-64-v3": cpu_target("x86_64", ["-march=x86-64-v3"], "AVX2"),
    "x86-64-v4": cpu_target("x86_64", ["-march=x86-64-v4"], "AVX-512"),
    "aarch64": cpu_target("aarch64", [], "NEON"),
    "aarch64-macos": cpu_target("aarch64", ["-mcpu=apple-m1"], "NEON", is_mac=True),
}


class OfflineCpuProgram(Program):
    """A kernel as an object file.

    Attributes
    ----------
    kernel : CompiledKernel
    """

    def __init__(self, kernel: CompiledKernel, entry: EntryPoint) -> None:
        self.kernel = kernel
        self.signature = build_signature(entry, kernel.layouts)
        self.engine = kernel.engine
        self.max_group_size = self.signature.limits.max_total or MAX_THREADS_PER_THREADGROUP

    @property
    def asm(self) -> Mapping[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and assembly (made when asked for)."""
        return self.kernel.asm()

    def default_group_size(self, grid: Size) -> Size:
        """See `Program.default_group_size`."""
        return spread(grid, self.max_group_size)


class CpuTarget(OfflineDevice):
    """A CPU target."""

    def __init__(self, name: str, target: Target) -> None:
        self.name, self.target = f"cpu:{name}", target

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OfflineCpuProgram:
        """See `Device.compile`."""
        request = self._request(unit, entry, constants)
        kernel = compile_kernel(replace(request, is_linked=False), shared_cache())
        return OfflineCpuProgram(kernel, entry)

    def bundle_files(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> dict[str, bytes]:
        """See `OfflineDevice.bundle_files`."""
        if "apple" in self.target.triple:
            raise DeviceUnavailable(f"[{self.name}] bundles have code for Linux only.")
        return bundle_files(self._request(unit, entry, constants), shared_cache())

    def native_libraries(self) -> dict[str, bytes]:
        """See `OfflineDevice.native_libraries`."""
        cache, target = shared_cache(), native_build.linux(self.target.name)
        runtime = native_library.build(cache, target).read_bytes()
        return {self.bundle_abi: runtime, **fast_launch.prebuilt(cache, target)}

    @functools.cached_property
    def bundle_abi(self) -> str:
        """See `Device.bundle_abi`."""
        return native_library.sources_digest(native_build.linux(self.target.name))

    def _request(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> KernelRequest:
        return KernelRequest(unit, entry, constants, self.target, settings.cpu_engine)


def open_target(architecture: str) -> CpuTarget:
    """The target of an architecture such as ``"x86-64-v3"``.

    Raises
    ------
    DeviceUnavailable
        If there is no such target.
    """
    if architecture not in _TARGETS:
        raise DeviceUnavailable(
            f"[cpu] unknown CPU target {architecture!r}; choose one of {', '.join(_TARGETS)}."
        )
    return CpuTarget(architecture, _TARGETS[architecture])
