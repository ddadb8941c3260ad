"""The real binding's data, and a Metal module that refuses whatever PyObjC would refuse."""

import os
import types
from pathlib import Path

import numpy as np
import pytest

from metalloid.compat import Metal


def metadata(path=""):
    """The metadata of pyobjc-framework-Metal for each selector, and its enumerations by name.

    Parameters
    ----------
    path : str, optional
        Of another framework's data.
    """
    path = path or os.environ.get("METALLOID_PYOBJC_METAL")
    if not path:
        pytest.skip("METALLOID_PYOBJC_METAL is missing: the data of pyobjc-framework-Metal")
    selectors = {}

    def register(owner, selector, data):
        known = selectors.setdefault(selector.decode(), data)
        if len(str(data)) > len(str(known)):
            selectors[selector.decode()] = data

    objc = types.ModuleType("objc")
    objc.arch = "arm64"
    objc.registerMetaDataForSelector = register
    objc.__getattr__ = lambda name: lambda *args, **named: None
    text = Path(path).read_text().replace("import objc, sys", "import sys")
    names = {"objc": objc, "__name__": "metadata"}
    exec(compile(text, path, "exec"), names)
    enums = {}
    for entry in names["enums"].split("$"):
        name, _, value = entry.partition("@")
        if value.lstrip("-").isdigit():
            enums[name] = int(value)
    return selectors, enums


class Checked:
    """An object of the software device, whose methods are called as PyObjC would let them be."""

    def __init__(self, target, selectors, used):
        self.target, self._selectors, self._used = target, selectors, used

    def __getattr__(self, name):
        method = getattr(self.target, name)
        selector = name.replace("_", ":")

        def call(*args):
            assert len(args) == name.count("_"), f"{name} takes {name.count('_')} arguments"
            data = self._selectors.get(selector)
            self._used.add(selector)
            # PyObjC asks the runtime about methods of ordinary classes.
            for index, argument in enumerate(args):
                if data and index + 2 in data.get("arguments", {}):
                    check_argument(selector, data["arguments"][index + 2], argument, args)
            return self.wrap(method(*(getattr(a, "target", a) for a in args)))

        return call

    def wrap(self, value):
        if isinstance(value, tuple):
            return tuple(map(self.wrap, value))
        structs = Metal.MTLResourceID | Metal.MTLSize
        plain = isinstance(value, str | int | float | dict | memoryview | type(None) | structs)
        return value if plain else Checked(value, self._selectors, self._used)


def check_argument(selector, data, argument, args):
    """Raise for what PyObjC cannot convert."""
    kind = data.get("type", b"@")
    where = f"{selector}: {argument!r} for {kind}"
    if data.get("type_modifier") == b"o" or kind == b"@?":
        assert argument is None or callable(argument), where
    elif kind == b"Q":
        assert isinstance(argument, int), where
        assert argument >= 0, where
    elif kind == b"q":
        assert isinstance(argument, int), where
    elif kind in (b"{MTLSize=QQQ}", b"{MTLOrigin=QQQ}"):
        assert len(argument) == 3, where
        assert all(type(n) is int and n >= 0 for n in argument), where
    elif kind == b"^v":
        length = args[data["c_array_length_in_arg"] - 2] if "c_array_length_in_arg" in data else 0
        assert np.frombuffer(argument, np.uint8).nbytes >= length, where
    elif kind == b"@":
        assert isinstance(argument, Checked | str | list | dict | type(None)), where


class CheckedModule:
    """``Metal``, with checked objects and only the real binding's constants."""

    def __init__(self, module, selectors, enums):
        self._module, self._selectors, self._enums = module, selectors, enums
        self.used = set()

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if isinstance(value, int):
            assert self._enums[name] == value, name
            return value
        if isinstance(value, type):
            return Checked(value, self._selectors, self.used)
        return lambda *args: Checked(None, self._selectors, self.used).wrap(
            value(*(getattr(a, "target", a) for a in args))
        )
