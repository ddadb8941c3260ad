"""Kernels for CPUs as files of a bundle: variants that can run any launch, and the native runtime.

A bundle runs where there is no compiler, so it has what this device would otherwise compile when a
launch needs it (`variants`), with and without checks of the accesses that launches may prove, and
with lines for messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from metalloid.backends.cpu.compile.bounds import UNCHECKED, BoundsRequest
from metalloid.backends.cpu.compile.engines import (
    CompiledKernel,
    KernelRequest,
    compile_kernel,
    facts_of,
    restored,
)
from metalloid.backends.cpu.compile.variants import Variant, shipped_variants, substitutes
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.errors import DeviceUnavailable

_INDEX, _CODE = "versions.json", "kernel.so"


def bundle_files(request: KernelRequest, cache: Cache) -> dict[str, bytes]:
    """The files of one kernel.

    Parameters
    ----------
    request : KernelRequest
        For its initial variant.
    """
    checks = request.unit.options.bounds != "unchecked"
    request = replace(request, debug_lines=True, bounds=BoundsRequest(checks=checks))
    first = compile_kernel(request, cache)
    files: dict[str, bytes] = {}
    index = []
    for kernel, bounds in [(first, request.bounds), *_more(first, request, cache)]:
        code = kernel.code.read_bytes()
        file = f"{digest(code)}.so"
        files[file] = code
        index.append({"bounds": str(bounds), "code": file, "facts": facts_of(kernel)})
    return {_INDEX: json.dumps(index).encode(), **files}


def _more(
    first: CompiledKernel, request: KernelRequest, cache: Cache
) -> Iterator[tuple[CompiledKernel, BoundsRequest]]:
    """The other versions of a kernel."""
    levels = [request.bounds, BoundsRequest(checks=True, every=True)]
    variants: Iterable[Variant | None] = [None]
    if first.variant is not None:
        variants = shipped_variants(first.variant, first.widths, first.waits)
    for variant in variants:
        for bounds in levels[: 1 + request.bounds.checks]:
            if (variant or first.variant, bounds) != (first.variant, request.bounds):
                yield (
                    compile_kernel(replace(request, variant=variant, bounds=bounds), cache),
                    bounds,
                )


class BundledVersions:
    """The versions of a kernel in a bundle; calling it finds one, as `CompileVariant` asks.

    Parameters
    ----------
    files : mapping
        Those that `bundle_files` made.
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
        self._versions = json.loads(files[_INDEX])
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
