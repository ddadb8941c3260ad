"""NVIDIA GPUs as targets of clang."""

from __future__ import annotations

import re
from pathlib import Path

from metalloid.compiler.toolchain.cache import digest
from metalloid.compiler.toolchain.target import Target
from metalloid.errors import DeviceUnavailable

#: PTX version by minimum compute capability: the oldest that supports it and `movmatrix`, which
#: drivers from 520 on accept. From PTX 8.0 on clang adds pairs of 16-bit integers by an instruction
#: whose lower half the assembler of CUDA 13.0 was seen to lose.
_PTX_OF = ((100, 86), (75, 78))
#: The first architecture with independent thread scheduling that we test.
MIN_CAPABILITY = 75


def cuda_target(architecture: str) -> Target:
    """The target of an architecture such as ``"sm_90"``.

    Raises
    ------
    DeviceUnavailable
        If it is not an architecture that we support.
    """
    match = re.fullmatch(r"sm_(\d+)a?", architecture)
    if match is None or int(match[1]) < MIN_CAPABILITY:
        raise DeviceUnavailable(
            f"[cuda] {architecture!r} is not a supported architecture: expected "
            f"sm_{MIN_CAPABILITY} or newer, such as sm_75, sm_80 or sm_90."
        )
    ptx = next(ptx for capability, ptx in _PTX_OF if int(match[1]) >= capability)
    flags = (
        *("-target", "nvptx64-nvidia-cuda"),
        f"-march={architecture}",
        f"--cuda-feature=+ptx{ptx}",
        f"-DMETALLOID_COMPUTE_CAPABILITY={match[1]}",
    )
    return Target(architecture, flags, Path(__file__).parents[1] / "include" / "entry.h")


def bundle_abi() -> str:
    """Changes when what PTX in bundles shares with launches does."""
    folder = Path(__file__).parents[1]
    headers = (*sorted((folder / "include").glob("*.h")), folder / "native" / "launch.h")
    return digest(*(path.read_bytes() for path in headers))
