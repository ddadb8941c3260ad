"""PyDotCompute's Metal backend and unified buffers: its modules below this one.

    from metalloid.compat.pydotcompute.backends.metal import MetalBackend
    from metalloid.compat.pydotcompute.core.unified_buffer import UnifiedBuffer

Arrays on the device are metalloid's. In a program that computes with ``mlx.core as mx``, write
``import metalloid as mx`` instead.
"""
