"""``mx.cuda``: NVIDIA's GPUs."""

from __future__ import annotations


def is_available() -> bool:
    """Whether kernels in CUDA can run: never. Kernels in Metal run on NVIDIA's GPUs."""
    return False
