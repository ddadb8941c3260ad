"""MLX programs, anywhere: an ``mlx.core`` on metalloid, or MLX's own with metalloid's kernels.

    import metalloid.compat.mlx as compat; compat.install()  # before an unchanged program
    python -m metalloid.compat.mlx program.py                # the same

`install` lets ``import mlx.core`` find `metalloid.compat.mlx.core`: arrays, transforms and kernels
of metalloid with MLX's names and semantics. ``mlx.nn``, ``mlx.optimizers`` and ``mlx.utils`` are
those of the installed ``mlx`` package, unchanged.

`patch` instead leaves MLX as it is, and only lets its custom kernels (``mx.fast.metal_kernel``) run
on metalloid.
"""

from metalloid.compat.mlx.installation import install, uninstall
from metalloid.compat.mlx.patching import metal_kernel, patch, unpatch

__all__ = ["install", "metal_kernel", "patch", "uninstall", "unpatch"]
