"""SPIR-V as a compile-only target, on any machine."""

from __future__ import annotations

from collections.abc import Mapping

from metalloid.backends.opencl.compile.compile_spirv import compile_spirv
from metalloid.backends.opencl.compile.target import spirv_target
from metalloid.backends.opencl.runtime.program import OfflineProgram
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.errors import DeviceUnavailable
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.offline import OfflineDevice


class SpirvTarget(OfflineDevice):
    """A compile-only device."""

    name = "spirv"

    def __init__(self) -> None:
        self.target = spirv_target()

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OfflineProgram:
        """See `Device.compile`."""
        kernel = compile_spirv(unit, entry, constants, self.target, shared_cache())
        return OfflineProgram(kernel, entry, self.target)

    def bundle_files(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> dict[str, bytes]:
        """See `OfflineDevice.bundle_files`: refused."""
        raise DeviceUnavailable(
            "[bundle] a bundle cannot have SPIR-V. Write the module of a kernel to a file of its "
            "own: metalloid compile FILE --target spirv --emit spv -o FOLDER."
        )


def open_target(architecture: str) -> SpirvTarget:
    """The target; SPIR-V has no architectures.

    Raises
    ------
    DeviceUnavailable
        If one is given.
    """
    if architecture:
        raise DeviceUnavailable("[spirv] there are no architectures: the target is 'spirv'.")
    return SpirvTarget()
