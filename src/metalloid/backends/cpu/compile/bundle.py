"""Kernels for CPUs as files of a bundle: variants that can run any launch, and the native runtime.

A bundle runs where there is no compiler, so it has what this device would otherwise compile when a
launch needs it (`variants`), with and without checks of the accesses that launches may prove, and
with lines for messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from metalloid.backends.cpu.compile.compiled_kernel import (
    VERSIONS,
    BoundsRequest,
    CompiledKernel,
    facts_of,
)
from metalloid.backends.cpu.compile.engines import KernelRequest, compile_kernel
from metalloid.backends.cpu.compile.variants import Variant, shipped_variants
from metalloid.compiler.toolchain.cache import Cache, digest


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
    return {VERSIONS: json.dumps(index).encode(), **files}


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
