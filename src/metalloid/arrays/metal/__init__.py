"""Metal sources of the kernels of the array library."""

from __future__ import annotations

import functools
import importlib.resources


@functools.cache
def metal_source(*names: str) -> str:
    """Return the concatenated text of files in this folder.

    Parameters
    ----------
    *names : str
        File names without ``.metal``.

    Examples
    --------
    >>> "namespace numpy" in metal_source("arrays")
    True
    """
    folder = importlib.resources.files(__name__)
    return "\n".join((folder / f"{name}.metal").read_text("utf-8") for name in names)
