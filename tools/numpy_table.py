"""The tables of docs/numpy.md: every name of NumPy, and how `metalloid.numpy` computes it.

``python tools/numpy_table.py`` writes them into the page; a test keeps them current.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

import metalloid.numpy as own
from metalloid.numpy import host

PAGE = Path(__file__).parents[1] / "docs" / "numpy.md"
#: The tables follow this line of the page.
MARK = "<!-- The tables below are written by tools/numpy_table.py. -->\n"
#: The names differ between versions of NumPy.
VERSION = f"\nThe names are those of NumPy {'.'.join(numpy.__version__.split('.')[:2])}.\n"


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module or class of NumPy, without submodules."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = {name: getattr(module, name) for name in names if not name.startswith("__")}
    return sorted(name for name, value in values.items() if not inspect.ismodule(value))


def rows(theirs: Any, ours: Any) -> Iterator[tuple[str, str, str]]:
    """Name, kind and reason of all names of a module or class."""
    for name in names_of(theirs):
        value = inspect.getattr_static(ours, name, None)
        if ours is own and name in host.ON_HOST:
            reason = host.ON_HOST[name]
            yield name, "text" if reason == host.TEXT else "host", reason
        elif value is None and name != "newaxis":
            reason = host.MISSING.get(name, "") if ours is own else MISSING.get(name, "")
            yield name, "missing", reason
        elif isinstance(value, own.ufunc):
            yield name, value.kind, "there is no kernel" if value.kind == "host" else ""
        elif ours is own and name in host.SAME:
            yield name, "numpy", ""
        else:
            yield name, "composition", ""


#: Reasons outside of the main namespace.
MISSING = {
    "ctypes": "the address may change with each evaluation",
    "getfield": "no structured types",
    "setfield": "no structured types",
    "setflags": "values are immutable",
}

MODULES: dict[str, tuple[Any, Any]] = {
    "numpy": (numpy, own),
    "numpy.ndarray": (numpy.ndarray, own.ndarray),
    "numpy.linalg": (numpy.linalg, own.linalg),
    "numpy.fft": (numpy.fft, own.fft),
    "numpy.random.Generator": (numpy.random.Generator, own.random.Generator),
}


def tables() -> str:
    """The text of all tables."""
    parts, exceptions = [], []
    for title, (theirs, ours) in MODULES.items():
        listed = list(rows(theirs, ours))
        parts.append(f"\n## {title}\n\n| | names |\n|---|---|\n")
        for kind in ("kernel", "composition", "numpy", "text"):
            names = [f"`{name}`" for name, k, _ in listed if k == kind]
            if names:
                parts.append(f"| {kind}, {len(names)} | {' '.join(names)} |\n")
        exceptions += [
            f"| `{title}.{name}` | {kind} | {reason} |\n"
            for name, kind, reason in listed
            if kind in ("host", "missing")
        ]
    parts += ["\n## Exceptions\n\n| name | | reason |\n|---|---|---|\n", *exceptions]
    return "".join(parts)


def page() -> str:
    """The page with current tables."""
    head, _, _ = PAGE.read_text().partition(MARK)
    return f"{head}{MARK}{VERSION}{tables()}"


if __name__ == "__main__":
    PAGE.write_text(page())
