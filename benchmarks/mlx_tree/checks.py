"""Findings of the sanitizer in an entry, launched as the check of its results does."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.backends.cpu.runtime import fast_checks
from mlx_tree.agreement import Unchecked
from mlx_tree.entries import KERNELS, Entry, families, family_of

#: The exact engine takes less time for these small launches than the compilation of another form.
#: A kernel whose launches have taken so many seconds gets one.
_SECONDS = 10.0

_known = families()


def findings_of(tree: Path, entry: Entry) -> dict[str, Any]:
    """Findings of an entry as JSON has them, and why its check has ended before its end.

    Each has its kind, the lines of its accesses as ``file:line``, and its count. A fault ends the
    launch: its text is the kind.
    """
    fast_checks.MAX_EXACT_SECONDS, fast_checks.MANY_THREADS = _SECONDS, math.inf
    path = tree / KERNELS / entry.file
    family, reason, faults = family_of(entry, _known), "", []
    rng = np.random.default_rng(zlib.crc32(entry.name.encode()))
    with (
        mtl.config.scope(strict_barriers=False),  # some entries need that
        mtl.checking(raises=False) as findings,
    ):
        try:
            if family is None:
                raise Unchecked("no family covers it")
            lib = mtl.library(path=path, include_dirs=[tree], device="cpu", check=True)
            family.check(lib, entry.name, rng)
        except Unchecked as why:
            reason = f"unchecked: {why}"
        except mtl.KernelFault as error:
            lines = [f"{_relative(tree, error.file)}:{error.line}"] if error.file else []
            faults = [{"kind": "fault", "lines": lines, "count": 1, "text": error.reason}]
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".strip()[:1000]
    collected = [
        {
            "kind": finding.kind,
            "lines": [f"{_relative(tree, a.file)}:{a.line}" for a in finding.accesses],
            "count": finding.count,
            "text": finding.summary,
        }
        for finding in findings
    ]
    return {"findings": collected + faults, "reason": reason}


def _relative(tree: Path, file: str | None) -> str:
    """A file of the tree as the results name it, wherever the tree is."""
    folder = tree / KERNELS
    is_there = file is not None and Path(file).is_relative_to(folder)
    return str(Path(file).relative_to(folder)) if is_there else str(file)
