"""Buffers that are kept on host and device, and the machine's devices."""

from metalloid.compat.pydotcompute.core.accelerator import Accelerator
from metalloid.compat.pydotcompute.core.unified_buffer import BufferState, UnifiedBuffer

__all__ = ["Accelerator", "BufferState", "UnifiedBuffer"]
