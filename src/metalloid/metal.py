"""Features that only Apple's GPUs have."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from metalloid.errors import ArgumentError
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device

__all__ = ["capture"]


def capture(
    path: str | os.PathLike[str], device: str | Device = "metal"
) -> contextlib.AbstractContextManager[None]:
    """Write what a GPU does within a ``with`` block to a file that Xcode shows.

    Parameters
    ----------
    path : str or path
        It ends in ``.gputrace`` and does not exist yet.
    device : str or Device, optional
        One of Apple's GPUs; the first without.

    Raises
    ------
    ArgumentError
        If the device is none of Apple's GPUs.
    DeviceUnavailable
        If this machine has none.
    LaunchError
        At the begin of the block, if Metal does not begin a trace: it expects
        ``MTL_CAPTURE_ENABLED=1`` in the environment of the process.

    Examples
    --------
    >>> import metalloid as mtl
    >>> with mtl.metal.capture("trace.gputrace"):  # doctest: +SKIP
    ...     event = kernel(x, threads=1000)
    """
    chosen: Any = get_device(device)
    if not hasattr(chosen, "capture"):
        raise ArgumentError(f"[capture] is for Apple's GPUs, not for {chosen.name}.")
    trace: contextlib.AbstractContextManager[None] = chosen.capture(os.fspath(path))
    return trace
