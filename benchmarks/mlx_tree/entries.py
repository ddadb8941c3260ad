"""Which kernels MLX's tree has, and which family knows how to check each."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import metalloid as mtl
import mlx_tree
from metalloid.compiler.frontend.unit import Bounds
from mlx_tree.agreement import Family

KERNELS = Path("mlx/backend/metal/kernels")


class Entry(NamedTuple):
    """One kernel: its file, relative to MLX's folder of kernels, and its name there."""

    file: str
    name: str


def families() -> tuple[Family, ...]:
    """The families of every module of this package that has ``FAMILIES``."""
    members: list[Family] = []
    for module in pkgutil.iter_modules(mlx_tree.__path__):
        members += getattr(importlib.import_module(f"mlx_tree.{module.name}"), "FAMILIES", ())
    return tuple(members)


def family_of(entry: Entry, known: Sequence[Family]) -> Family | None:
    """The family that covers an entry."""
    mine = [f for f in known if entry.file in f.files and f.covers(entry.name)]
    assert len(mine) < 2, f"{entry} belongs to {', '.join(f.name for f in mine)}"
    return mine[0] if mine else None


def files(tree: Path, nax: bool = False) -> Iterator[str]:
    """The ``.metal`` files: those for the matrix units of newer GPUs (NAX), or the others."""
    for path in sorted((tree / KERNELS).rglob("*.metal")):
        if path.stem.endswith("_nax") == nax:
            yield path.relative_to(tree / KERNELS).as_posix()


#: Kernels that read past the last row of the weights, and drop what they read.
_READ_PAST_THE_END = re.compile(r"\w+_qmm_(t_\w*_alN_false|rhs_nt_)")


def reads_past_the_end(entry: Entry) -> bool:
    """Whether an entry needs ``bounds="unchecked"``."""
    return _READ_PAST_THE_END.match(entry.name) is not None


def library(tree: Path, file: str, bounds: Bounds | None = None) -> mtl.Library:
    return mtl.library(path=tree / KERNELS / file, include_dirs=[tree], bounds=bounds)


def templates(library: mtl.Library) -> dict[str, str]:
    """The function template of each kernel of a library, or the kernel's own function."""
    kernels = library._unit.kernels
    return {name: kernel.expression.partition("<")[0] for name, kernel in kernels.items()}
