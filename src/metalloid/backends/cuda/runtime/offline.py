"""NVIDIA GPUs as compile-only targets, on any machine."""

from __future__ import annotations

from collections.abc import Mapping

from metalloid.backends.cuda.compile.bundle import bundle_files
from metalloid.backends.cuda.compile.compile_ptx import compile_ptx
from metalloid.backends.cuda.compile.target import bundle_abi, cuda_target
from metalloid.backends.cuda.runtime import launcher
from metalloid.backends.cuda.runtime.program import OfflineProgram
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain import native_build
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.offline import OfflineDevice


class CudaTarget(OfflineDevice):
    """A compile-only device of one architecture."""

    def __init__(self, architecture: str) -> None:
        self.name = f"cuda:{architecture}"
        self.target = cuda_target(architecture)

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OfflineProgram:
        """See `Device.compile`."""
        max_threads = entry.limits.max_total or 0
        kernel = compile_ptx(unit, entry, constants, self.target, shared_cache(), max_threads)
        return OfflineProgram(kernel, entry, self.target.name)

    def bundle_files(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> dict[str, bytes]:
        """See `OfflineDevice.bundle_files`."""
        return bundle_files(unit, entry, constants, self.target, shared_cache())

    def native_libraries(self) -> dict[str, bytes]:
        """See `OfflineDevice.native_libraries`: for hosts with either architecture."""
        hosts = [native_build.linux(name) for name in ("x86_64", "aarch64")]
        return {
            launcher.sources_digest(host): launcher.build(shared_cache(), host).read_bytes()
            for host in hosts
        }

    @property
    def bundle_abi(self) -> str:
        """See `Device.bundle_abi`."""
        return bundle_abi()


def open_target(architecture: str) -> CudaTarget:
    """The target of an architecture such as ``"sm_90"``.

    Raises
    ------
    DeviceUnavailable
        If it is not an architecture that we support.
    """
    return CudaTarget(architecture)
