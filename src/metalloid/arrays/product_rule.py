"""Who multiplies matrices: the host's BLAS, a kernel of ours, or a sum of products."""

from __future__ import annotations

from metalloid.arrays.types import DType, bfloat16, float16, float32
from metalloid.runtime.device import Device

#: Ways to multiply (`metalloid.config.products`); "auto" is what `way_of` says.
HOST, REGISTERS, SIMDGROUPS = "host", "registers", "simdgroups"

#: Rows and columns of a tile of a kernel of ours.
TILE = 64
#: Types that are added up in float32, as simdgroup matrices can.
FLOATS = (float16, bfloat16, float32)


def way_of(device: Device, dtype: DType, rows: int, columns: int, depth: int, batch: int,
           is_fused: bool) -> str:  # fmt: skip
    """The way that takes least time.

    Parameters
    ----------
    is_fused : bool
        Whether a kernel of ours would do more on its way.
    """
    if device.name != "cpu":
        return SIMDGROUPS if dtype in FLOATS else REGISTERS
    return HOST if dtype.kind in "fc" and dtype not in (float16, bfloat16) else REGISTERS
