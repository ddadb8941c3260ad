"""Device traits: parameters of code generation, independent of the names of devices."""

from __future__ import annotations

from typing import NamedTuple


class DeviceTraits(NamedTuple):
    """Parameters of code that a device runs fast.

    Attributes
    ----------
    is_simt : bool
        Whether the device hides memory latency by tens of thousands of threads with coalesced
        accesses; otherwise it has a few cores, which are fastest with long loops.
    threadgroups, threads : int
        Targets for a reduction of rows, and of columns, if there is enough work.
    matrices : frozenset of str
        Element types for which hardware units multiply simdgroup matrices.
    has_tensor_cores : bool
        Whether those are NVIDIA's tensor cores, whose matrices are larger than Metal's.
    macros : tuple of str
        Macros that generated text defines, for extensions of MSL.
    has_forward_progress : bool
        Whether threadgroups that have begun make progress while later ones wait for them.
    has_bfloat_dots : bool
        Whether an instruction adds the products of pairs of bfloats to floats.
    cores : int
        Cores of a device with a few of them, each of which runs a threadgroup at a time.
    vector_registers, vector_bytes : int
        Vector registers of a core, and the size of one.
    """

    is_simt: bool
    threadgroups: int
    threads: int
    matrices: frozenset[str] = frozenset()
    has_tensor_cores: bool = False
    macros: tuple[str, ...] = ()
    has_forward_progress: bool = False
    has_bfloat_dots: bool = False
    cores: int = 1
    vector_registers: int = 32
    vector_bytes: int = 64


FEW_CORES = DeviceTraits(False, 128, 2**14, macros=("METALLOID_PREFETCHES",))
BFLOAT_DOTS = FEW_CORES._replace(
    has_bfloat_dots=True, macros=(*FEW_CORES.macros, "METALLOID_BFLOAT_DOTS")
)
MANY_THREADS = DeviceTraits(True, 8192, 2**18)
#: Apple's.
MATRIX_UNITS = MANY_THREADS._replace(matrices=frozenset({"float16", "bfloat16", "float32"}))
#: NVIDIA's; and those from compute capability 8.0 on.
CUDA_CORES = MANY_THREADS._replace(has_forward_progress=True)
TENSOR_CORES = CUDA_CORES._replace(
    matrices=frozenset({"float16", "bfloat16"}), has_tensor_cores=True,
    macros=("METALLOID_TENSOR_BLOCKS",),
)  # fmt: skip
