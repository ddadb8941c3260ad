"""MetalPy's arrays and operations: `from metalloid.compat.metalpy import MetalPy, MetalArray`.

Faithful to its generation a891dc3: flat arrays of float32 or uint32, a new one for every operation,
which has ended when the call returns.
"""

from metalloid.compat.metalpy.metal_array import MetalArray
from metalloid.compat.metalpy.operations import MetalPy

__all__ = ["MetalArray", "MetalPy"]
