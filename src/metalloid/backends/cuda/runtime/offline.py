"""NVIDIA GPUs as targets, on machines that have none."""

from __future__ import annotations

from collections.abc import Mapping

from metalloid.backends.cuda.compile.pipeline import compile_ptx
from metalloid.backends.cuda.compile.target import cuda_target
from metalloid.backends.cuda.runtime.program import OfflineProgram
from metalloid.compiler.cache import shared_cache
from metalloid.compiler.unit import TranslationUnit
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.offline import OfflineDevice


class CudaTarget(OfflineDevice):
    """An architecture of NVIDIA's GPUs."""

    def __init__(self, architecture: str) -> None:
        self.name = f"cuda:{architecture}"
        self.target = cuda_target(architecture)

    def compile(
        self, unit: TranslationUnit, entry: EntryPoint, constants: Mapping[int, str]
    ) -> OfflineProgram:
        """See `Device.compile`."""
        most = entry.limits.most or 0
        kernel = compile_ptx(unit, entry, constants, self.target, shared_cache(), most)
        return OfflineProgram(kernel, entry, self.target.name)


def open_target(architecture: str) -> CudaTarget:
    """The target of an architecture such as ``"sm_90"``.

    Raises
    ------
    DeviceUnavailable
        If it is none.
    """
    return CudaTarget(architecture)
