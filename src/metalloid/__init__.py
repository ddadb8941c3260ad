"""Metal kernels, written once, run from Python on any machine.

Public names are resolved when they are first used (PEP 562): importing this package imports
neither NumPy nor a compiler.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metalloid import differentiate, fft, linalg, metal, nn, numpy, random
    from metalloid.arrays import api
    from metalloid.arrays.api import *  # noqa: F403
    from metalloid.arrays.functions.io import load
    from metalloid.errors import (
        ArgumentError,
        BundleError,
        CompileError,
        CompileWarning,
        DeviceUnavailable,
        KernelFault,
        LaunchCancelled,
        LaunchError,
        LaunchTimeout,
        MetalloidError,
        OutOfMemory,
        SanitizerError,
        TraceError,
        UnknownFunction,
        UnsupportedType,
    )
    from metalloid.kernels.builders.elementwise_kernel import ElementwiseKernel
    from metalloid.kernels.builders.reduction_kernel import ReductionKernel
    from metalloid.kernels.builders.scan_kernel import ScanKernel
    from metalloid.kernels.bundles.load import load_library
    from metalloid.kernels.bundles.save import save_library
    from metalloid.kernels.kernel import Kernel
    from metalloid.kernels.library import Library, library
    from metalloid.kernels.metal_kernel import MetalKernel, metal_kernel
    from metalloid.profiler.profile import profile
    from metalloid.runtime.arguments.argument_buffer import ArgumentBuffer
    from metalloid.runtime.arguments.signature_binder import threadgroup_memory
    from metalloid.runtime.devices.device import Device
    from metalloid.runtime.devices.registry import default_device, devices
    from metalloid.runtime.graph import Graph
    from metalloid.runtime.launch.event import Event
    from metalloid.runtime.memory.buffer import Buffer
    from metalloid.runtime.textures.sampler import Sampler
    from metalloid.runtime.textures.texture import Texture
    from metalloid.sanitizer.checking import checking
    from metalloid.sanitizer.exploring import explore
    from metalloid.settings import settings as config
    from metalloid.transforms.batching import vmap
    from metalloid.transforms.checking import gradcheck
    from metalloid.transforms.compiling import compile
    from metalloid.transforms.custom import checkpoint, custom_function
    from metalloid.transforms.gradients import grad, jvp, stop_gradient, value_and_grad, vjp

    __version__: str

__all__: list[str] = [
    "ArgumentBuffer",
    "ArgumentError",
    "Buffer",
    "BundleError",
    "CompileError",
    "CompileWarning",
    "Device",
    "DeviceUnavailable",
    "ElementwiseKernel",
    "Event",
    "Graph",
    "Kernel",
    "KernelFault",
    "LaunchCancelled",
    "LaunchError",
    "LaunchTimeout",
    "Library",
    "MetalKernel",
    "MetalloidError",
    "OutOfMemory",
    "ReductionKernel",
    "Sampler",
    "SanitizerError",
    "ScanKernel",
    "Texture",
    "TraceError",
    "UnknownFunction",
    "UnsupportedType",
    "__version__",
    "checking",
    "checkpoint",
    "compile",
    "config",
    "custom_function",
    "default_device",
    "devices",
    "explore",
    "grad",
    "gradcheck",
    "jvp",
    "library",
    "load",
    "load_library",
    "metal_kernel",
    "profile",
    "save_library",
    "stop_gradient",
    "threadgroup_memory",
    "value_and_grad",
    "vjp",
    "vmap",
]

if TYPE_CHECKING:  # of an installed package checkers take as public what stands in __all__
    __all__ += api.__all__
    __all__ += ["differentiate", "fft", "linalg", "metal", "nn", "numpy", "random"]

#: Where each public name lives, if not under its own name: module, or module and name there.
_HOMES = {
    "ArgumentBuffer": "runtime.arguments.argument_buffer",
    "Buffer": "runtime.memory.buffer",
    "Device": "runtime.devices.registry",
    "ElementwiseKernel": "kernels.builders.elementwise_kernel",
    "Event": "runtime.launch.event",
    "Graph": "runtime.graph",
    "Kernel": "kernels.kernel",
    "Library": "kernels.library",
    "MetalKernel": "kernels.metal_kernel",
    "ReductionKernel": "kernels.builders.reduction_kernel",
    "Sampler": "runtime.textures.sampler",
    "ScanKernel": "kernels.builders.scan_kernel",
    "Texture": "runtime.textures.texture",
    "checking": "sanitizer.checking",
    "checkpoint": "transforms.custom",
    "compile": "transforms.compiling",
    "config": "settings:settings",
    "custom_function": "transforms.custom",
    "default_device": "runtime.devices.registry",
    "devices": "runtime.devices.registry",
    "explore": "sanitizer.exploring",
    "grad": "transforms.gradients",
    "gradcheck": "transforms.checking",
    "jvp": "transforms.gradients",
    "library": "kernels.library",
    "load": "arrays.functions.io",
    "load_library": "kernels.bundles.load",
    "metal_kernel": "kernels.metal_kernel",
    "profile": "profiler.profile",
    "save_library": "kernels.bundles.save",
    "stop_gradient": "transforms.gradients",
    "threadgroup_memory": "runtime.arguments.signature_binder",
    "value_and_grad": "transforms.gradients",
    "vjp": "transforms.gradients",
    "vmap": "transforms.batching",
}


#: Parts that are attributes without an import.
_PARTS = frozenset({"differentiate", "fft", "linalg", "metal", "nn", "numpy", "random"})
#: Names other than functions that the array API requires of a namespace.
_OF_NAMESPACES = frozenset({"__array_api_version__", "__array_namespace_info__"})


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%metal`` and ``%metal_time`` to a notebook: ``%load_ext metalloid``."""
    from metalloid.notebook.magics import register

    register(shell)
    if sys.version_info < (3, 13):
        from metalloid.unknown_keywords import show_suggestions_in

        show_suggestions_in(shell)


if not TYPE_CHECKING:  # with it, checkers would take every misspelt name

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return importlib.import_module(f"metalloid.{name}")
        if name == "__version__":
            globals()[name] = value = _installed_version()
            return value
        if name in __all__:
            module, _, attribute = _HOMES.get(name, "errors").partition(":")
        elif name in _OF_NAMESPACES or not name.startswith("_"):
            module, attribute = "arrays.api", ""  # the functions of arrays; this imports NumPy
        else:
            raise AttributeError(f"module 'metalloid' has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(f"metalloid.{module}"), attribute or name)
        except AttributeError:
            from metalloid.errors import unknown_attribute

            raise unknown_attribute("metalloid", name, __dir__()) from None
        globals()[name] = value
        return value


def _installed_version() -> str:
    """The version of the installed package, which its wheel has from a tag."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("metalloid")
    except PackageNotFoundError:
        return "0.0.dev0"


if sys.version_info < (3, 13) and not TYPE_CHECKING:

    def _show(kind, error, trace, shown_before=sys.excepthook):
        """Show an uncaught error, with a suggestion for an unknown keyword."""
        if kind is TypeError:
            from metalloid.unknown_keywords import suggest_keyword

            suggest_keyword(error)
        shown_before(kind, error, trace)

    sys.excepthook = _show


def __dir__() -> list[str]:
    from metalloid.arrays import api

    return sorted({*__all__, *_PARTS, *api.__all__})
