"""Metal from Python: PyObjC's module on a Mac, or the substitute that the settings name."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import platform
import sys
from dataclasses import dataclass
from typing import Any

from metalloid.backends.metal.pyobjc import ownership
from metalloid.errors import DeviceUnavailable
from metalloid.settings import settings

_PYOBJC = "Metal"
#: The first macOS whose buffers tell where the GPU sees them.
_OLDEST_MACOS = (13, 0)


@dataclass(frozen=True)
class Binding:
    """A module that offers Metal by PyObjC's names.

    Attributes
    ----------
    module : module
    is_software : bool
        Whether it is not Apple's.
    pool : callable
        Makes a context that releases Metal's temporary objects when it ends.
    """

    module: Any
    is_software: bool
    pool: Any

    def sibling(self, name: str) -> Any:
        """Another framework's module, from where this one is.

        Raises
        ------
        DeviceUnavailable
            If it is not installed.
        """
        folder = self.module.__name__.rpartition(".")[0]
        try:
            return importlib.import_module(f"{folder}.{name}".lstrip("."))
        except ImportError as error:
            raise DeviceUnavailable(
                f"[metal] the Python module {name!r} cannot be imported ({error}). "
                f"Install pyobjc-framework-{name}."
            ) from None

    def file_url(self, path: str) -> Any:
        """An NSURL."""
        if self.is_software:
            return self.module.NSURL.fileURLWithPath_(path)
        return importlib.import_module("Foundation").NSURL.fileURLWithPath_(path)


def open_binding() -> Binding:
    """The binding that the settings name.

    Raises
    ------
    DeviceUnavailable
        Where there is none, with the reason.
    """
    return _open(settings.metal_binding or _PYOBJC, sys.platform, settings.validate)


@functools.cache
def _open(name: str, system: str, validate: bool) -> Binding:
    if name == _PYOBJC:
        _check_system(system)
    if validate:  # Metal reads these once, when it is loaded
        os.environ.setdefault("MTL_DEBUG_LAYER", "1")
        os.environ.setdefault("MTL_SHADER_VALIDATION", "1")
    try:
        module = importlib.import_module(name)
        if name != _PYOBJC:
            return Binding(module, True, contextlib.nullcontext)
        objc = importlib.import_module("objc")
    except ImportError as error:
        raise DeviceUnavailable(
            f"[metal] the Python module {name!r} cannot be imported ({error}). "
            + ("Install pyobjc-framework-Metal." if name == _PYOBJC else "See metal_binding.")
        ) from None
    ownership.register(objc)
    return Binding(module, False, objc.autorelease_pool)


def _check_system(system: str) -> None:
    if system != "darwin":
        raise DeviceUnavailable(
            f"[metal] Apple GPUs are found under macOS, and this is {platform.system()}. "
            "(METALLOID_METAL_BINDING=metalloid.compat.Metal selects a software device "
            "for tests.)"
        )
    version = tuple(
        int(number) for number in platform.mac_ver()[0].split(".")[:2] if number.isdigit()
    )
    if version and version < _OLDEST_MACOS:
        raise DeviceUnavailable(
            f"[metal] macOS {platform.mac_ver()[0]} is too old: metalloid's Metal device expects "
            f"macOS {_OLDEST_MACOS[0]} or newer."
        )
