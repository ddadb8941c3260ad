"""The Metal sources that the package ships."""

from __future__ import annotations

import functools
import importlib.resources


@functools.cache
def metal_source(package: str, *names: str) -> str:
    """Return the concatenated text of files in the folder of a package.

    Parameters
    ----------
    package : str
    *names : str
        File names without ``.metal``.

    Examples
    --------
    >>> "namespace numpy" in metal_source("metalloid.arrays.metal", "arrays")
    True
    """
    folder = importlib.resources.files(package)
    return "\n".join((folder / f"{name}.metal").read_text("utf-8") for name in names)
