"""Findings of the sanitizer in an entry, launched as the check of its results does."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggml_tree.families
import numpy as np
from ggml_tree.source import Source

import metalloid as mtl
from metalloid.backends.cpu.runtime import fast_checks
from metalloid.compiler.frontend.unit import Bounds
from mlx_tree.agreement import Family, Unchecked
from mlx_tree.entries import KERNELS, Entry, families, family_of

#: The exact engine takes less time for these small launches than the compilation of another form.
#: A kernel whose launches have taken so many seconds gets one.
_SECONDS = 10.0

_known = functools.cache(families)
_families_of_ggml = functools.cache(ggml_tree.families.families)


def findings_of(tree: Path, entry: Entry) -> dict[str, Any]:
    """Findings of an entry of MLX."""
    path, family = tree / KERNELS / entry.file, family_of(entry, _known())
    library = functools.partial(mtl.library, path=path, include_dirs=[tree], device="cpu")
    return _findings(family, entry.name, tree / KERNELS, library)


def findings_of_ggml(folder: Path, entry: Entry) -> dict[str, Any]:
    """Findings of a kernel of ggml."""
    family = next((f for f in _families_of_ggml(folder) if f.covers(entry.name)), None)
    library = functools.partial(Source(folder).library, device="cpu")
    return _findings(family, entry.name, folder, library)


def _findings(
    family: Family | None, name: str, folder: Path, library: Callable[..., mtl.Library]
) -> dict[str, Any]:
    """Findings as JSON has them, and why the check of results has ended before its end.

    Each has its kind, the lines of its accesses as ``file:line``, and its count. An access outside
    of an array ends the check. It is one of the findings, and then the check runs without a look
    at bounds, for the others.
    """
    fast_checks.MAX_EXACT_SECONDS, fast_checks.MANY_THREADS = _SECONDS, math.inf
    faults: list[dict[str, Any]] = []
    bounds: Bounds = "checked"
    while True:
        reason, fault = "", None
        with (
            mtl.config.scope(strict_barriers=False),  # some entries need that
            mtl.checking(raises=False) as findings,
        ):
            try:
                if family is None:
                    raise Unchecked("no family covers it")
                rng = np.random.default_rng(zlib.crc32(name.encode()))
                family.check(library(check=True, bounds=bounds), name, rng)
            except Unchecked as why:
                reason = f"unchecked: {why}"
            except mtl.KernelFault as error:
                fault = error
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".strip()[:1000]
        if fault is not None:
            lines = [f"{_relative(folder, fault.file)}:{fault.line}"] if fault.file else []
            faults.append({"kind": "fault", "lines": lines, "count": 1, "text": fault.reason})
        if fault is None or bounds == "unchecked":
            break
        bounds = "unchecked"
    collected = [
        {
            "kind": finding.kind,
            "lines": [f"{_relative(folder, a.file)}:{a.line}" for a in finding.accesses],
            "count": finding.count,
            "text": finding.summary,
        }
        for finding in findings
    ]
    return {"findings": collected + faults, "reason": reason}


def _relative(folder: Path, file: str | None) -> str:
    """A file as the results name it, wherever the folder is."""
    is_there = file is not None and Path(file).is_relative_to(folder.resolve())
    return str(Path(file).relative_to(folder.resolve())) if is_there else str(file)
