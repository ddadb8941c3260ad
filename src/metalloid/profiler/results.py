"""Results of a profile: records, and the limits of devices."""

from __future__ import annotations

import functools

from metalloid.bench.ceilings import Ceilings, ceilings, store, stored
from metalloid.errors import MetalloidError
from metalloid.profiler.records import (
    CompilationRecord,
    CountingRecord,
    EvaluationRecord,
    LaunchRecord,
)
from metalloid.runtime.devices.device import Device


class Results:
    """Records of a block.

    Attributes
    ----------
    launches : list of LaunchRecord
    evaluations : list of EvaluationRecord
    compilations : list of CompilationRecord
    counting : list of CountingRecord
    """

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}
        self.launches: list[LaunchRecord] = []
        self.evaluations: list[EvaluationRecord] = []
        self.compilations: list[CompilationRecord] = []
        self.counting: list[CountingRecord] = []

    @property
    def seconds(self) -> float:
        """Seconds from the beginning to the end of the block, or to now."""
        raise NotImplementedError

    @functools.cached_property
    def ceilings(self) -> dict[str, Ceilings]:
        """The limits of each device that has launches, by its name."""
        limits = {}
        for name, device in self._devices.items():
            known = stored(device)
            try:
                limits[name] = known or store(device, ceilings(device=device))
            except MetalloidError:  # no compiler, for example
                continue
        return limits

    def share(self, launch: LaunchRecord) -> float | None:
        """Part of what the device could do in the time of a launch; None if it is not known.

        More than 1 if its data was in the caches.
        """
        limits = self.ceilings.get(launch.device)
        if launch.counts is None or limits is None:
            return None
        return launch.counts.share(launch.device_seconds, limits)
