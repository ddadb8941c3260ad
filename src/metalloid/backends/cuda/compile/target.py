"""NVIDIA GPUs as targets of clang."""

from __future__ import annotations

import re
from pathlib import Path

from metalloid.compiler.target import Target
from metalloid.errors import DeviceUnavailable

#: PTX that clang writes, by least compute capability: the oldest that knows it, and `movmatrix`,
#: which drivers from 520 on take. From PTX 8.0 on clang adds pairs of 16-bit integers by an
#: instruction of which the assembler of CUDA 13.0 was seen to lose the lower half.
_PTX_OF = ((100, 86), (75, 78))
#: The first architecture with `activemask` and independent threads in a warp that we test.
LEAST_CAPABILITY = 75


def cuda_target(architecture: str) -> Target:
    """The target of an architecture such as ``"sm_90"``.

    Raises
    ------
    DeviceUnavailable
        If it is no architecture, or one without what MSL needs.
    """
    match = re.fullmatch(r"sm_(\d+)a?", architecture)
    if match is None or int(match[1]) < LEAST_CAPABILITY:
        raise DeviceUnavailable(
            f"[cuda] {architecture!r} is no architecture from sm_{LEAST_CAPABILITY} on, "
            "such as sm_75, sm_80 or sm_90."
        )
    ptx = next(ptx for least, ptx in _PTX_OF if int(match[1]) >= least)
    flags = (
        *("-target", "nvptx64-nvidia-cuda"),
        f"-march={architecture}",
        f"--cuda-feature=+ptx{ptx}",
        f"-DMETALLOID_COMPUTE_CAPABILITY={match[1]}",
    )
    return Target(architecture, flags, Path(__file__).parents[1] / "include" / "entry.h")
