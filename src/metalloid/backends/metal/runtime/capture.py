"""Traces of what a GPU does, for Xcode."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.errors import LaunchError


@contextlib.contextmanager
def capturing(gpu: Any, binding: Binding, path: str) -> Iterator[None]:
    """Write a trace while the block runs.

    Raises
    ------
    LaunchError
        If Metal does not begin one.
    """
    module = binding.module
    if not hasattr(module, "MTLCaptureManager"):
        raise LaunchError("[capture] the software Metal device cannot write traces.")
    manager = module.MTLCaptureManager.sharedCaptureManager()
    if not manager.supportsDestination_(module.MTLCaptureDestinationGPUTraceDocument):
        raise LaunchError(
            "[capture] Metal traces are disabled in this process. Set MTL_CAPTURE_ENABLED=1 in "
            "its environment."
        )
    descriptor = module.MTLCaptureDescriptor.alloc().init()
    descriptor.setCaptureObject_(gpu)
    descriptor.setDestination_(module.MTLCaptureDestinationGPUTraceDocument)
    descriptor.setOutputURL_(binding.file_url(os.path.abspath(path)))
    begun, error = manager.startCaptureWithDescriptor_error_(descriptor, None)
    if not begun:
        why = error.localizedDescription() if error is not None else "no reason given"
        raise LaunchError(f"[capture] cannot start a trace at {path}: {why}")
    try:
        yield
    finally:
        manager.stopCapture()
