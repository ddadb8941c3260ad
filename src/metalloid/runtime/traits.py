"""What code should look like that a device runs fast: told by numbers, not by names of devices."""

from __future__ import annotations

from typing import NamedTuple


class Traits(NamedTuple):
    """How generated kernels best divide their work on a device.

    Attributes
    ----------
    has_thin_threads : bool
        Whether tens of thousands of threads, neighbours of which read neighbours in memory, hide
        what memory makes them wait for; otherwise a few cores, which like long loops.
    threadgroups, threads : int
        So many should work on a reduction of rows, and of columns, if there is enough to do.
    """

    has_thin_threads: bool
    threadgroups: int
    threads: int


FEW_CORES = Traits(False, 128, 2**14)
MANY_THREADS = Traits(True, 8192, 2**18)
