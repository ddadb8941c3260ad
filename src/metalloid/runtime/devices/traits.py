"""What code should look like that a device runs fast: told by numbers, not by names of devices."""

from __future__ import annotations

from typing import NamedTuple


class DeviceTraits(NamedTuple):
    """How generated kernels best divide their work on a device.

    Attributes
    ----------
    is_simt : bool
        Whether tens of thousands of threads, neighbours of which read neighbours in memory, hide
        what memory makes them wait for; otherwise a few cores, which like long loops.
    threadgroups, threads : int
        So many should work on a reduction of rows, and of columns, if there is enough to do.
    matrices : frozenset of str
        Types of which units of their own multiply matrices of simdgroups.
    has_tensor_cores : bool
        Whether those are NVIDIA's, whose matrices are larger than Metal's.
    macros : tuple of str
        Defined in generated texts, for what the device has beside MSL.
    """

    is_simt: bool
    threadgroups: int
    threads: int
    matrices: frozenset[str] = frozenset()
    has_tensor_cores: bool = False
    macros: tuple[str, ...] = ()


FEW_CORES = DeviceTraits(False, 128, 2**14)
MANY_THREADS = DeviceTraits(True, 8192, 2**18)
#: Apple's.
MATRIX_UNITS = MANY_THREADS._replace(matrices=frozenset({"float16", "bfloat16", "float32"}))
#: NVIDIA's, from compute capability 8.0 on.
TENSOR_CORES = MANY_THREADS._replace(
    matrices=frozenset({"float16", "bfloat16"}), has_tensor_cores=True,
    macros=("METALLOID_TENSOR_BLOCKS",),
)  # fmt: skip
