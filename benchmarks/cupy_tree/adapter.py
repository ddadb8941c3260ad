"""The module `cupy` for CuPy's tests: `metalloid.numpy`, and CuPy's own `cupy.testing`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import math
import sys
import types
import warnings
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy

import metalloid.numpy as own
from cupy_tree import random_adapter

#: Packages that are about CUDA or about CuPy's inside: their names are mocks.
INNER = (
    "cupy._core", "cupy._creation", "cupy._environment", "cupy._functional", "cupy._indexing",
    "cupy._logic", "cupy._manipulation", "cupy._math", "cupy._padding", "cupy._sorting",
    "cupy._statistics", "cupy._util", "cupy.cublas", "cupy.cuda", "cupy.fft._cache",
    "cupy.fft._fft", "cupy.lib._shape_base", "cupy.linalg._util",
    "cupy.prof", "cupy.random._generator_api", "cupy.random._sample", "cupy_backends", "cupyx",
)  # fmt: skip


class _Name(mock.MagicMock):
    """A mock with the same text in all processes, as it can be part of the name of a test."""

    def __repr__(self) -> str:
        return f"<{self._extract_mock_name()}>"


class _Inner(types.ModuleType):
    """A module whose names are mocks."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Name(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == inner or name.startswith(f"{inner}.") for inner in INNER):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Inner(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _PlanSettings(types.ModuleType):
    """`cupy.fft.config`: the tests repeat transforms with both values of a deprecated setting."""

    _planning = True

    @property
    def enable_nd_planning(self) -> bool:
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning, stacklevel=2)
        return self._planning

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        warnings.warn("enable_nd_planning is deprecated", DeprecationWarning, stacklevel=2)
        self._planning = value


def _package(name: str, source: Any, path: str = "") -> types.ModuleType:
    """A package with the public names of a module."""
    package = types.ModuleType(name)
    package.__path__ = [path] if path else []
    names = getattr(source, "__all__", None) or [n for n in dir(source) if n[0] != "_"]
    for each in names:
        if not isinstance(getattr(source, each), types.ModuleType):
            setattr(package, each, getattr(source, each))
    sys.modules[name] = package
    return package


def install(checkout: Path, dtypes: str) -> None:
    """Put the module in place.

    Parameters
    ----------
    checkout : pathlib.Path
        CuPy's repository.
    dtypes : str
        Characters of the types over which tests loop; the others are left out.
    """
    sys.meta_path.insert(0, _Finder())
    cupy: Any = _package("cupy", own, str(checkout / "cupy"))
    cupy.__version__ = "14.0"
    for name in ("linalg", "fft", "random"):
        setattr(cupy, name, _package(f"cupy.{name}", getattr(own, name)))
    cupy.fft.config = sys.modules["cupy.fft.config"] = _PlanSettings("cupy.fft.config")
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = mock.MagicMock()
    cupy.lib = _package("cupy.lib", own.lib)
    cupy.lib.stride_tricks = sys.modules["cupy.lib.stride_tricks"] = own.lib.stride_tricks
    cupy.exceptions = sys.modules["cupy.exceptions"] = numpy.exceptions
    cupy.asnumpy = lambda x, *arguments, **options: numpy.asarray(x)
    cupy.get_array_module = lambda *arrays: (
        cupy if any(isinstance(x, own.ndarray) for x in arrays) else numpy
    )
    own.ndarray.get = lambda self, *arguments, **options: numpy.asarray(self)  # type: ignore
    own.ndarray.set = lambda self, value, *rest: self.__setitem__(Ellipsis, value)  # type: ignore
    random_adapter.adapt(cupy.random)
    cupy.polynomial = sys.modules["cupy.polynomial"] = own.polynomial
    for name in ("cupy.cuda", "cupyx", "cupy._core", "cupy._core.internal"):
        importlib.import_module(name)
    cupy.cuda = cuda = sys.modules["cupy.cuda"]
    cupy._core = sys.modules["cupy._core"]
    cupy._core.internal.prod = math.prod
    cupy._core.get_size = lambda size: (
        () if size is None else tuple(size) if numpy.ndim(size) else (size,)
    )
    identities: Any = importlib.import_module("cupy.linalg._util")
    identities.stacked_identity = lambda shape, n, dtype: own.broadcast_to(
        own.eye(n, dtype=dtype), (*shape, n, n)
    )
    util: Any = importlib.import_module("cupy._util")
    util.PerformanceWarning = type("PerformanceWarning", (Warning,), {})
    cuda.runtime.is_hip = False
    cuda.runtime.CUDARuntimeError = RuntimeError
    cuda.runtime.getDeviceCount = lambda: 1
    cuda.runtime.runtimeGetVersion = cuda.driver.get_build_version = lambda: 12000
    compiler = importlib.import_module("cupy.cuda.compiler")
    compiler._run_cc = lambda *arguments: "release 12.0"  # type: ignore[attr-defined]
    cuda.get_local_runtime_version = lambda: 12020
    _limit_types(dtypes)


def _limit_types(selected: str) -> None:
    """Let tests loop over fewer types."""
    loops = importlib.import_module("cupy.testing._loops")
    testing = importlib.import_module("cupy.testing")
    one, multiple = loops.for_dtypes, loops.for_dtypes_combination

    def chosen(dtypes: Any) -> list[Any]:
        dtypes = list(dtypes)
        return [dtype for dtype in dtypes if numpy.dtype(dtype).char in selected] or dtypes[:1]

    def for_dtypes(dtypes: Any, name: str = "dtype") -> Any:
        return one(chosen(dtypes), name)

    def for_dtypes_combination(types: Any, names: Any = ("dtype",), full: Any = None) -> Any:
        types = chosen(types)
        return multiple(types if len(types) > 1 else types * 2, names, full)

    for module in (loops, testing):
        module.for_dtypes = for_dtypes
        module.for_dtypes_combination = for_dtypes_combination
