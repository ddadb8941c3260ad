"""Check the launches of a block of a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from metalloid.runtime.launch.findings import Finding, collecting
from metalloid.runtime.launch.unordered import UnorderedLaunches
from metalloid.runtime.launch.unordered import unordered as unordered_launches
from metalloid.settings import settings


@contextmanager
def checking(
    raises: bool = True,
    nan: bool = False,
    unordered: bool = False,
    suspicious: bool = True,
) -> Iterator[list[Finding]]:
    """Check the launches on the CPU in a ``with`` block for defects of their kernels.

    A checked launch runs one thread after another and looks at every access of device and
    threadgroup memory. It finds data races, within a threadgroup and between threadgroups, and
    reads of threadgroup memory that has not been written. It is much slower, and it has ended when
    the call returns. See docs/debugging.md.

    Parameters
    ----------
    raises : bool, optional
        Whether a launch with findings raises `SanitizerError`; otherwise they are only collected.
    nan : bool, optional
        Whether to look for operations, too, that make NaN of numbers: ``0 / 0``, ``sqrt(-1)``.
    unordered : bool, optional
        Whether to look for races between the launches of this thread in the block, too, as if they
        could run at the same time, as launches in a concurrent encoder of Metal do.
    suspicious : bool, optional
        Whether to look, too, for what MSL defines and is seldom meant: reads and writes of texels
        outside of a texture, and shifts by as many bits as the type has or more. Leave it out for
        programs that rely on it.

    Yields
    ------
    list of Finding
        The findings so far, one for each pair of lines.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... kernel void count(device int* total, uint i [[thread_position_in_grid]])
    ... { total[0] += 1; }
    ... ''', device="cpu")
    >>> with mtl.checking(raises=False) as findings:
    ...     event = lib.count(np.zeros(1, np.int32), threads=64)
    >>> findings[0].summary
    "data race (write, read) on element 0 of 'total' (device memory)"
    """
    with ExitStack() as stack:
        stack.enter_context(settings.scope(check=True, check_nan=nan, check_suspicious=suspicious))
        collector = stack.enter_context(collecting(raises))
        if unordered:
            launches = UnorderedLaunches()
            stack.callback(launches.close)
            stack.enter_context(unordered_launches(launches))
        yield collector.findings
