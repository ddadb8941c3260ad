"""Derivatives of kernels, reverse and forward: from MSL to MSL."""

from metalloid.differentiate.adjoint import AdjointKernel, vjp
from metalloid.differentiate.tangent import TangentKernel, jvp

__all__ = ["AdjointKernel", "TangentKernel", "jvp", "vjp"]
