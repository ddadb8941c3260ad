"""Other packages for all cores of the CPU, with the kernels as their users write them.

A peer is a module with ``NAME`` and ``launcher(case)``, which returns a function that runs the case
and one that returns its result as an array, or None if the case has no natural form there.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from types import ModuleType

#: Cases that all of them should have.
CASES = (
    "julia", "mandelbrot", "nbody", "matmul", "stencil", "histogram", "prefix_sum", "softmax",
)  # fmt: skip
_MODULES = (
    "numba_peer", "warp_peer", "jax_peer", "taichi_peer", "quadrants_peer", "opencl_peer",
    "torch_peer",
)  # fmt: skip


def peers() -> Iterator[tuple[str, ModuleType | str]]:
    """Each peer's module, or why it is left out."""
    # What they would say at their start is not part of the table.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    for name in _MODULES:
        try:
            module = importlib.import_module(f"cpu_rivals.peers.{name}")
        except ImportError as error:
            yield name.removesuffix("_peer"), f"not installed: {error}"
        except Exception as error:  # a package that is broken here must not end the run
            yield name.removesuffix("_peer"), f"does not start: {type(error).__name__}: {error}"
        else:
            yield module.NAME, module
