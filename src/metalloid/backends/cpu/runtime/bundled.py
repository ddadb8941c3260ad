"""Kernels of bundles on this machine's CPU."""

from __future__ import annotations

import json
from collections.abc import Mapping

from metalloid.backends.cpu.compile.compiled_kernel import (
    UNCHECKED,
    VERSIONS,
    BoundsRequest,
    CompiledKernel,
    restored,
)
from metalloid.backends.cpu.compile.variants import Variant, substitutes
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.errors import DeviceUnavailable

_CODE = "kernel.so"


class BundledVersions:
    """The versions of a kernel in a bundle; calling it finds one, as `CompileVariant` asks.

    Parameters
    ----------
    files : mapping
        Those that `compile.bundle.bundle_files` made.
    architecture : str
        Of the target: ``"x86_64"`` or ``"aarch64"``.

    Attributes
    ----------
    first : CompiledKernel
        The initial one.
    bounds : BoundsRequest
        The accesses that its code checks.
    """

    def __init__(self, files: Mapping[str, bytes], architecture: str, cache: Cache) -> None:
        self._files, self._architecture, self._cache = files, architecture, cache
        self._versions = json.loads(files[VERSIONS])
        first = self._versions[0]
        self._numbers = {
            (each["facts"]["variant"], each["bounds"]): number
            for number, each in enumerate(self._versions)
        }
        self._kernels: dict[int, CompiledKernel] = {}
        self.first = self._kernel(0)
        self.bounds = BoundsRequest(checks=first["bounds"] != str(UNCHECKED))

    def __call__(
        self, variant: Variant | None, bounds: BoundsRequest, debug_lines: bool = False
    ) -> CompiledKernel:
        """A version that can run what a variant can run.

        Raises
        ------
        DeviceUnavailable
            If there is none.
        """
        names = [""]
        if variant is not None:
            candidates = substitutes(variant, self.first.widths, self.first.waits)
            names = [str(each) for each in candidates]
        for name in names:
            for checks in (bounds, BoundsRequest(checks=True, every=True)):
                number = self._numbers.get((name, str(checks)))
                if number is not None:
                    return self._kernel(number)
        raise DeviceUnavailable(
            "[bundle] bundles have code for strict barriers only. Unset METALLOID_STRICT_BARRIERS, "
            "or compile the kernel from its source."
        )

    def _kernel(self, number: int) -> CompiledKernel:
        if number not in self._kernels:
            version = self._versions[number]
            code = self._files[version["code"]]
            key = digest("bundled code", code)  # a file, as the loader takes no memory
            files = self._cache.load(key) or self._cache.save(key, {_CODE: code})
            self._kernels[number] = restored(version["facts"], self._architecture, files[_CODE], {})
        return self._kernels[number]
