"""SPIR-V as a target of clang."""

from __future__ import annotations

from pathlib import Path

from metalloid.compiler.toolchain.target import Target
from metalloid.runtime.launch.program import SIMDGROUP_WIDTH

_TRIPLE = "spirv64-unknown-unknown"
_SUBGROUP = "-DMETALLOID_SUBGROUP="


def spirv_target(subgroup: int = SIMDGROUP_WIDTH) -> Target:
    """The target: SPIR-V with 64-bit addresses, for OpenCL.

    Parameters
    ----------
    subgroup : int
        Threads of a subgroup, which holds one or more simdgroups.
    """
    flags = ("-target", _TRIPLE, f"{_SUBGROUP}{subgroup}")
    return Target("spirv64", flags, Path(__file__).parents[1] / "include" / "entry.h")


def subgroup_of(target: Target) -> int:
    """Threads of a subgroup."""
    (size,) = (flag for flag in target.flags if flag.startswith(_SUBGROUP))
    return int(size.removeprefix(_SUBGROUP))
