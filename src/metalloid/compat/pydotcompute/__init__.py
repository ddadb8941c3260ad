"""PyDotCompute's Metal backend and unified buffers: its modules below this one.

    from metalloid.compat.pydotcompute.backends.metal import MetalBackend
    from metalloid.compat.pydotcompute.core.unified_buffer import UnifiedBuffer

Arrays on the device are metalloid's. Where a program computes with ``mlx.core as mx``, ``import
metalloid as mx`` takes its place.
"""
