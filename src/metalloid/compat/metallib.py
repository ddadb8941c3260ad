"""Compiled libraries hold code for Apple's GPUs; MSL sources of the same name replace them."""

from __future__ import annotations

import os

#: What a library that Apple's compiler made begins with.
COMPILED_BY_APPLE = b"MTLB"


def msl_file(path: str) -> str | None:
    """The file of MSL that a path means: itself, or the ``.metal`` of the same name in its folder.

    None if neither is there, or the one that is there holds code for Apple's GPUs.
    """
    for candidate in (path, os.path.splitext(path)[0] + ".metal"):
        try:
            with open(candidate, "rb") as file:
                start = file.read(len(COMPILED_BY_APPLE))
        except OSError:
            continue
        if start != COMPILED_BY_APPLE:
            return candidate
    return None
