"""The two limits of a machine: bytes per second of its memory, operations per second."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from metalloid.bench.cases import Arrays
from metalloid.bench.measure import in_turns
from metalloid.compiler.toolchain.cache import digest, shared_cache
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import library
from metalloid.runtime.devices.device import Device
from metalloid.runtime.memory.buffer import Buffer

_CHAINS, _ITERATIONS = 8, 1000  # in multiply_adds


@dataclass(frozen=True)
class Ceilings:
    """Upper bounds for every kernel.

    Attributes
    ----------
    bandwidth : float
        Bytes that memory delivers or takes, per second.
    arithmetic : float
        Floating-point operations per second; a multiply-add is two.

    Examples
    --------
    >>> Ceilings(bandwidth=1e10, arithmetic=1e11).at(intensity=2)
    20000000000.0
    """

    bandwidth: float
    arithmetic: float

    def at(self, intensity: float) -> float:
        """Operations per second that are possible with so many operations per byte."""
        return min(self.arithmetic, intensity * self.bandwidth)

    def or_higher(self, other: Ceilings) -> Ceilings:
        """The higher of each of two measurements' limits.

        Examples
        --------
        >>> Ceilings(1e10, 1e11).or_higher(Ceilings(2e10, 5e10))
        Ceilings(bandwidth=20000000000.0, arithmetic=100000000000.0)
        """
        return Ceilings(
            max(self.bandwidth, other.bandwidth), max(self.arithmetic, other.arithmetic)
        )


def ceilings(tiny: bool = False, repeat: int = 15, device: Device | None = None) -> Ceilings:
    """Measure the limits of a device: the best of some runs, as they are limits.

    Parameters
    ----------
    tiny : bool
        Whether to use small arrays, as a smoke test.
    repeat : int
        Runs.
    device : Device, optional
        By default the default device.
    """
    lib = library(
        importlib.resources.files("metalloid.bench").joinpath("ceilings.metal").read_text("utf-8"),
        device=device,
    )
    if lib.device.memory == "own":
        return _of_card(lib.copy, lib.multiply_adds, tiny, repeat)
    # Of four floats: 16 MiB, and as much for the copy; as large as the largest cases, so that both
    # lie where the next cache, or memory, serves them.
    elements = 1 << (12 if tiny else 20)
    array = Arrays()
    x, y = array(elements, 4), array(elements, 4)
    threads = 1 << (10 if tiny else 14)
    sums = np.empty(threads, np.float32)
    runs = in_turns(
        [
            lambda: lib.copy(y, x, threads=elements),
            lambda: lib.multiply_adds(sums, 0.5, _ITERATIONS, threads=threads),
        ],
        repeat,
    )
    copying, computing = map(min, runs)
    return Ceilings(
        (x.nbytes + y.nbytes) / copying, 2.0 * _CHAINS * _ITERATIONS * threads / computing
    )


def _of_card(copy: Kernel, multiply_adds: Kernel, tiny: bool, repeat: int) -> Ceilings:
    """The limits of a device with memory of its own: arrays are larger than its caches."""
    device = copy.device
    elements, threads = 1 << (12 if tiny else 25), 1 << (10 if tiny else 20)
    x, y = (Buffer(np.zeros((elements, 4), np.float32), device) for _ in range(2))
    sums = Buffer(np.zeros(threads, np.float32), device)

    def best(launch: Callable[[], float]) -> float:
        return min(launch() for _ in range(repeat))

    copying = best(lambda: copy(y, x, threads=elements).seconds)
    computing = best(lambda: multiply_adds(sums, 0.5, _ITERATIONS, threads=threads).seconds)
    return Ceilings(
        (x.nbytes + y.nbytes) / copying, 2.0 * _CHAINS * _ITERATIONS * threads / computing
    )


def _key(device: Device) -> str:
    return digest("ceilings", device.name, device.info().description)


def store(device: Device, limits: Ceilings) -> Ceilings:
    """Store the limits of a device, for profiles; return the higher ones of these and earlier."""
    before = stored(device)
    if before is not None:
        limits = limits.or_higher(before)
    if limits != before:
        cache = shared_cache()
        cache.discard(_key(device))
        cache.save(_key(device), {"ceilings.json": json.dumps(asdict(limits))})
    return limits


def stored(device: Device) -> Ceilings | None:
    """The limits of a device that were measured before; None if there are none."""
    files = shared_cache().load(_key(device))
    return None if files is None else Ceilings(**json.loads(files["ceilings.json"].read_bytes()))
