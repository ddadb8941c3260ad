"""Kernels for NVIDIA GPUs as files of a bundle: PTX, which the driver assembles for its GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from metalloid.backends.cuda.compile.compile_ptx import PtxKernel, compile_ptx, restored
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.launch.program import MAX_THREADS_PER_THREADGROUP


def bundle_files(
    unit: TranslationUnit,
    entry: EntryPoint,
    constants: Mapping[int, str],
    target: Target,
    cache: Cache,
) -> dict[str, bytes]:
    """The files of one kernel: as fast as it can be, and for the largest threadgroups."""
    limit = entry.limits.max_total or 0
    files = {}
    for threads in dict.fromkeys((limit, min(limit or MAX_THREADS_PER_THREADGROUP,
                                             MAX_THREADS_PER_THREADGROUP))):  # fmt: skip
        kernel = compile_ptx(unit, entry, constants, target, cache, threads)
        facts = {name: value for name, value in asdict(kernel).items() if name != "stages"}
        facts["bounds"] = kernel.bounds and kernel.bounds._asdict()
        files[f"{threads}.ptx"] = kernel.text.encode()
        files[f"{threads}.json"] = json.dumps(facts).encode()
    return files


def read_bundle(files: Mapping[str, bytes], threads: int, cache: Cache) -> PtxKernel:
    """The kernel for threadgroups of at least so many threads; 0: as fast as it can be."""
    ptx, facts = files[f"{threads}.ptx"], json.loads(files[f"{threads}.json"])
    key = digest("bundled code", ptx)
    known = cache.load(key) or cache.save(key, {"kernel.ptx": ptx})
    return restored(facts, {"ptx": known["kernel.ptx"]})
