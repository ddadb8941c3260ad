"""Adjoints of kernels: from MSL to MSL."""

from metalloid.differentiate.adjoint import AdjointKernel, vjp

__all__ = ["AdjointKernel", "vjp"]
