"""PyTorch's headers for Metal, which its wheels for the CPU carry as well."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import metalloid as mtl

DRIVERS = Path(__file__).parent / "drivers"


@functools.cache
def include_folder() -> Path | None:
    """The folder of torch's headers; None without torch, which is not imported for it."""
    spec = importlib.util.find_spec("torch")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(package) / "include/c10/metal").is_dir():
            return Path(package) / "include"
    return None


@functools.cache
def driver(name: str) -> mtl.Library:
    """The library of one driver."""
    return mtl.library(path=DRIVERS / f"{name}.metal", include_dirs=[include_folder()])
