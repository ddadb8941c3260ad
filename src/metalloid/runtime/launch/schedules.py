"""The number of launches that have run in the order of a schedule."""

from __future__ import annotations

_count = 0


def count_scheduled_launch() -> None:
    """Count a launch; one at a time."""
    global _count
    _count += 1


def scheduled_launches() -> int:
    """Launches of this process so far whose threads ran in the order of a schedule."""
    return _count
