"""Why tests fail: what cannot be, by the reasons of docs/numpy.md, and what is open."""

from __future__ import annotations

import re

#: Reasons of what cannot be, with patterns of the test's name, the statement and the error.
CANNOT: tuple[tuple[str, str], ...] = ()


def reason_of(name: str, statement: str, error: str) -> tuple[bool, str]:
    """Whether a failure is about what cannot be, and its reason."""
    text = "\n".join((name, statement, error))
    for reason, pattern in CANNOT:
        if re.search(pattern, text):
            return True, reason
    return False, "others"
