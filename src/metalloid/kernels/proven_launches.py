"""The fast launch path of kernels whose launches may be refuted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import FastLaunch, PlainParameter
from metalloid.runtime.launch.program import Program, Size

if TYPE_CHECKING:
    from metalloid.runtime.launch.refutation import Refutation

_MAX_LAUNCHERS = 256


class ProvenLaunches:
    """Fast launches of sizes and numbers that were looked at.

    Each has a launcher of its own, which leaves buffers that are smaller than it needs to the
    general path.
    """

    def __init__(
        self,
        program: Program,
        device: Device,
        parameters: Sequence[PlainParameter],
        refutation: Refutation,
    ) -> None:
        self._program, self._device, self._parameters = program, device, parameters
        self._refutation = refutation
        self._launchers: dict[tuple[Any, ...], FastLaunch] = {}
        self._numbers: tuple[int, ...] = ()  # indices of the arguments whose numbers matter
        self._pick: Callable[[Sequence[Any]], Any] | None = None  # these numbers

    def launch(
        self, args: tuple[Any, ...], threads: Any, group_size: Any, wait: bool | None = None
    ) -> Event | None:
        """See `FastLaunch`."""
        pick = self._pick
        try:
            launcher = self._launchers.get((threads, group_size, pick and pick(args)))
        except (IndexError, TypeError, ValueError):  # no argument there, or one without a hash
            return None
        return None if launcher is None else launcher(args, threads, group_size, wait)

    def add(
        self,
        args: Sequence[Any],
        threads: Any,
        group_size: Any,
        sizes: tuple[Size, Size],
        needs: Mapping[int, int],
    ) -> FastLaunch:
        """Add a launch that the refutation has let pass.

        Parameters
        ----------
        sizes : tuple of (Size, Size)
            Its grid and threadgroup.
        needs : mapping
            Bytes that arguments need by position.

        Returns
        -------
        callable
            The launcher of the only launch that was added, or of all.
        """
        self._add(args, threads, group_size, sizes, needs)
        if len(self._launchers) > 1 or self._pick is not None:
            return self.launch
        return next(iter(self._launchers.values()), self.launch)

    def _add(
        self,
        args: Sequence[Any],
        threads: Any,
        group_size: Any,
        sizes: tuple[Size, Size],
        needs: Mapping[int, int],
    ) -> None:
        read = self._refutation.read
        numbers = tuple(n for n, p in enumerate(self._parameters) if p.position in read)
        if numbers != self._numbers or len(self._launchers) >= _MAX_LAUNCHERS:
            self._launchers.clear()
            self._numbers, self._pick = numbers, operator.itemgetter(*numbers) if numbers else None
        if not all(isinstance(args[index], Number) for index in numbers):
            return
        key = (threads, group_size, self._pick and self._pick(args))
        if key in self._launchers:
            return
        parameters = [
            p._replace(least_bytes=max(p.least_bytes, needs.get(p.position, 0)))
            for p in self._parameters
        ]
        launcher = self._device.fast_launcher(
            self._program, parameters, {(threads, group_size): sizes}
        )
        if launcher is not None:
            self._launchers[key] = launcher
