"""Helpers of the tests of the Metal device: the device over the software binding, and stand-ins."""

import contextlib
import types

from metalloid.backends.metal.pyobjc.binding import Binding
from metalloid.backends.metal.runtime.device import MetalDevice
from metalloid.compat import Metal


def metal_device(**others):
    """A Metal device on the software binding, with other names in its module."""
    module = Metal
    if others:
        known = {name: getattr(Metal, name) for name in Metal.__all__}
        module = types.SimpleNamespace(**known | others)
    opened = Binding(module, True, contextlib.nullcontext)
    return MetalDevice(Metal.MTLCreateSystemDefaultDevice(), 0, opened)


class _Descriptor:
    @classmethod
    def alloc(cls):
        return cls()

    def init(self):
        self.told = {}
        return self


def descriptor(*settings):
    """A class of Metal's descriptors with these settings; `told` has what it is told."""

    def setter(name):
        return lambda self, value: self.told.__setitem__(name, value)

    return type("Descriptor", (_Descriptor,), {f"set{name}_": setter(name) for name in settings})
