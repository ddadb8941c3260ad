"""SPIR-V as a target of clang."""

from __future__ import annotations

from pathlib import Path

from metalloid.compiler.toolchain.target import Target

_TRIPLE = "spirv64-unknown-unknown"


def spirv_target() -> Target:
    """The target: SPIR-V with 64-bit addresses, for OpenCL."""
    flags = ("-target", _TRIPLE)
    return Target("spirv64", flags, Path(__file__).parents[1] / "include" / "entry.h")
