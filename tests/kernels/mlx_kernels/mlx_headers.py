"""MLX's kernel headers as its wheel ships them, and the drivers that instantiate their kernels."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import metalloid as mtl

_DRIVERS = Path(__file__).parent / "drivers"
_KERNELS = "mlx/backend/metal/kernels"
_KERNEL_DEFINITION = re.compile(r"\[\[\s*kernel\b[^\]]*\]\]\s+void\s+(\w+)\s*\(")


def include_folder() -> Path | None:
    """The folder that ``#include "mlx/..."`` is relative to; None without MLX's wheel."""
    # mlx is not imported: only its text is needed, and it cannot be loaded everywhere.
    spec = importlib.util.find_spec("mlx")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(package) / "include" / _KERNELS).is_dir():
            return Path(package) / "include"
    return None


def header_folder() -> Path:
    """The folder of the kernel headers."""
    folder = include_folder()
    assert folder is not None
    return folder / _KERNELS


def kernels_of(header: str) -> list[str]:
    """Names of the kernels and kernel templates that a header defines."""
    return _KERNEL_DEFINITION.findall((header_folder() / header).read_text("utf-8"))


def template_of(instance: str, templates: list[str]) -> str | None:
    """The kernel template that a driver's ``host_name`` begins with."""
    matching = [name for name in templates if f"{instance}_".startswith(f"{name}_")]
    return max(matching, key=len, default=None)


@functools.cache
def driver(name: str) -> mtl.Library:
    """The library of one driver."""
    return mtl.library(path=_DRIVERS / f"{name}.metal", include_dirs=[include_folder()])


def headers_library(*headers: str) -> mtl.Library:
    """The library of a text that includes `headers` and nothing else."""
    text = "".join(f'#include "{_KERNELS}/{header}"\n' for header in headers)
    return mtl.library(f"#include <metal_stdlib>\n{text}", include_dirs=[include_folder()])


def kernel(driver_name: str, name: str, constants: Mapping[Any, Any] | None = None) -> mtl.Kernel:
    """One kernel of a driver."""
    return driver(driver_name).function(name, constants)
