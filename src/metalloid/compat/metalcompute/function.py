"""Functions, and the handles of their runs."""

from __future__ import annotations

import _thread
import numbers
import time
from collections.abc import Sequence
from typing import Any

import metalloid as mtl
from metalloid.compat.memory import CopiedBytes, SharedMemory, divides_evenly
from metalloid.compat.metalcompute.buffer import Buffer, temporary
from metalloid.compat.metalcompute.failure import error


class Launcher:
    """Runs a kernel on memory that is given in the order of ``[[buffer(n)]]``, unchecked.

    Attributes
    ----------
    kernel : Kernel
    is_plain : bool
        Whether its parameters are buffers 0, 1, 2 ... and take all of each.
    """

    __slots__ = ("_parameters", "is_plain", "kernel")

    def __init__(self, kernel: mtl.Kernel) -> None:
        self.kernel = kernel
        self._parameters = [(p.index, p.layout.bytes) for p in kernel.signature.buffers]
        self.is_plain = all(
            position == index and divides_evenly(element)
            for position, (index, element) in enumerate(self._parameters)
        )

    def __call__(
        self, count: int, memories: Sequence[SharedMemory | CopiedBytes], wait: bool
    ) -> mtl.Event:
        """Run `count` threads.

        Raises
        ------
        error
        """
        if any(index >= len(memories) for index, _ in self._parameters):
            count = max(index for index, _ in self._parameters) + 1
            raise error(f"Buffer not found: {self.kernel.name} has {count}, got {len(memories)}")
        bound = [memories[index].argument(element) for index, element in self._parameters]
        try:
            return self.kernel(*bound, threads=count, wait=wait)
        except mtl.MetalloidError as failure:
            raise error(str(failure)) from None


_MOMENT = 0.01  # seconds


def _interrupt_soon() -> None:
    time.sleep(_MOMENT)
    _thread.interrupt_main()


class Run:
    """A pending run. When the handle goes away, it waits for the end of the run.

    A kernel that fails cannot raise there: Python prints its `KernelFault` as an exception that was
    ignored.
    """

    __slots__ = ("_event",)

    def __init__(self, event: mtl.Event) -> None:
        self._event = event

    def __del__(self) -> None:
        try:
            self._event.wait()
        except KeyboardInterrupt:
            # Python ignores what is raised here: Ctrl-C comes again when this has returned.
            _thread.start_new_thread(_interrupt_soon, ())

    def __str__(self) -> str:
        return "metalcompute.Run"


class Function:
    """A kernel function; call it with the number of threads and its buffers."""

    __slots__ = ("_kernel", "_launch", "_usual_length")

    def __init__(self, kernel: mtl.Kernel) -> None:
        self._launch, self._kernel = Launcher(kernel), kernel
        self._usual_length = len(kernel.signature.buffers) + 1 if self._launch.is_plain else 0

    def __call__(self, /, *arguments: Any, **ignored: Any) -> Run:
        """Start ``function(count, buffer0, buffer1, ...)``.

        What is no `Buffer` is copied into one for this run, so results written to it are lost.

        Raises
        ------
        error
        """
        if len(arguments) == self._usual_length and type(arguments[0]) is int:
            # The usual call, made short: only buffers, used as they are.
            try:
                bound = [argument.all_bytes for argument in arguments[1:]]
                return Run(self._kernel(*bound, threads=arguments[0], wait=False))
            except (AttributeError, mtl.MetalloidError):
                pass  # what is unusual or wrong is found below
        count, *given = arguments or (None,)
        if not given:
            raise error("Buffer not found")
        memories = [value.memory if type(value) is Buffer else temporary(value) for value in given]
        return Run(self._launch(_integer(count), memories, False))

    def __str__(self) -> str:
        return "metalcompute.Function"


def _integer(count: Any) -> int:
    """Any number as an integer."""
    if isinstance(count, numbers.Number) or hasattr(count, "__int__"):
        try:
            return int(count)
        except (TypeError, ValueError, OverflowError):
            pass
    raise error("First argument should be an integer kernel count")
