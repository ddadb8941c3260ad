"""Passes messages of kernels (``os_log``) from Metal's log states (macOS 15) to `logging`."""

from __future__ import annotations

import functools
import logging
from typing import Any

from metalloid.runtime.launch.log_messages import LOGGER

#: Size of the buffer for messages of a command buffer.
_MAX_BYTES = 2**20
#: By Metal's number: undefined, debug, info, notice, error, fault.
_LEVELS = (
    logging.INFO, logging.DEBUG, logging.INFO, logging.INFO, logging.ERROR, logging.CRITICAL,
)  # fmt: skip


class Logs:
    """The log state of one GPU.

    Attributes
    ----------
    is_offered : bool
        Whether this system's Metal has any.
    """

    def __init__(self, gpu: Any, module: Any) -> None:
        self._gpu, self._module = gpu, module
        self.is_offered = hasattr(module, "MTLLogStateDescriptor")

    @functools.cached_property
    def _state(self) -> Any:
        """None if the GPU has none."""
        descriptor = self._module.MTLLogStateDescriptor.alloc().init()
        descriptor.setLevel_(self._module.MTLLogLevelDebug)
        descriptor.setBufferSize_(_MAX_BYTES)
        state, _ = self._gpu.newLogStateWithDescriptor_error_(descriptor, None)
        if state is not None:
            state.addLogHandler_(emit)
        return state

    def command_buffer(self, queue: Any, logs: bool) -> Any:
        """A command buffer, for kernels that may log."""
        if not (logs and self.is_offered) or self._state is None:
            return queue.commandBuffer()
        descriptor = self._module.MTLCommandBufferDescriptor.alloc().init()
        descriptor.setLogState_(self._state)
        return queue.commandBufferWithDescriptor_(descriptor)


def emit(subsystem: str | None, category: str | None, level: int, message: str) -> None:
    """Hand a message to `logging`. Metal does not say which kernel or thread it comes from."""
    names = filter(None, (LOGGER, subsystem, category))
    logging.getLogger(".".join(map(str, names))).log(
        _LEVELS[level] if 0 <= level < len(_LEVELS) else logging.INFO,
        "%s",
        str(message),
        extra={"kernel": "", "kernel_threadgroup": None, "kernel_thread": None},
    )
