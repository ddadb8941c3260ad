"""PyObjC's ``Metal`` without a Mac: a software Metal device, on metalloid's own.

``from metalloid.compat import Metal`` in place of ``import Metal``. The device is strict: it raises
what ends a process on a Mac, and knows no method that Metal does not have.

Examples
--------
>>> from metalloid.compat import Metal
>>> device = Metal.MTLCreateSystemDefaultDevice()
>>> source = "kernel void two(device float *x, uint i [[thread_position_in_grid]]) { x[i] = 2; }"
>>> library, error = device.newLibraryWithSource_options_error_(source, None, None)
>>> function = library.newFunctionWithName_("two")
>>> pipeline, error = device.newComputePipelineStateWithFunction_error_(function, None)
>>> x = device.newBufferWithLength_options_(4 * 4, Metal.MTLResourceStorageModeShared)
>>> commands = device.newCommandQueue().commandBuffer()
>>> encoder = commands.computeCommandEncoder()
>>> encoder.setComputePipelineState_(pipeline)
>>> encoder.setBuffer_offset_atIndex_(x, 0, 0)
>>> size = Metal.MTLSizeMake(4, 1, 1)
>>> encoder.dispatchThreads_threadsPerThreadgroup_(size, size)
>>> encoder.endEncoding()
>>> commands.commit()
>>> commands.waitUntilCompleted()
>>> x.contents().as_buffer(16).cast("f").tolist()
[2.0, 2.0, 2.0, 2.0]
"""

from __future__ import annotations

import functools

from metalloid.compat.Metal import constants
from metalloid.compat.Metal.argument_descriptors import MTLArgumentDescriptor
from metalloid.compat.Metal.compile_options import MTLCompileOptions
from metalloid.compat.Metal.constants import *  # noqa: F403
from metalloid.compat.Metal.device import MTLDevice
from metalloid.compat.Metal.events import MTLSharedEventListener
from metalloid.compat.Metal.failures import FailedAssertion
from metalloid.compat.Metal.function_constants import MTLFunctionConstantValues
from metalloid.compat.Metal.pipeline import MTLComputePipelineDescriptor
from metalloid.compat.Metal.samplers import MTLSamplerDescriptor
from metalloid.compat.Metal.structures import (
    MTLOrigin,
    MTLOriginMake,
    MTLRegion,
    MTLRegionMake1D,
    MTLRegionMake2D,
    MTLRegionMake3D,
    MTLResourceID,
    MTLSize,
    MTLSizeMake,
)
from metalloid.compat.Metal.textures import MTLTextureDescriptor
from metalloid.runtime.devices.registry import devices_of, kinds
from metalloid.settings import settings

MTLCommandBufferErrorDomain = "MTLCommandBufferErrorDomain"
MTLLibraryErrorDomain = "MTLLibraryErrorDomain"

__all__ = [
    "FailedAssertion",
    "MTLArgumentDescriptor",
    "MTLCommandBufferErrorDomain",
    "MTLCompileOptions",
    "MTLComputePipelineDescriptor",
    "MTLCopyAllDevices",
    "MTLCreateSystemDefaultDevice",
    "MTLFunctionConstantValues",
    "MTLLibraryErrorDomain",
    "MTLOrigin",
    "MTLOriginMake",
    "MTLRegion",
    "MTLRegionMake1D",
    "MTLRegionMake2D",
    "MTLRegionMake3D",
    "MTLResourceID",
    "MTLSamplerDescriptor",
    "MTLSharedEventListener",
    "MTLSize",
    "MTLSizeMake",
    "MTLTextureDescriptor",
]
__all__ += [name for name in vars(constants) if name.startswith("MTL")]


@functools.cache
def _devices() -> tuple[MTLDevice, ...]:
    # What is named metal may itself run on this module.
    devices = [device for kind in kinds() if kind != "metal" for device in devices_of(kind)]
    return tuple(MTLDevice(device, index + 1) for index, device in enumerate(devices))


def MTLCreateSystemDefaultDevice() -> MTLDevice | None:
    """The default device, or the first there is; None if there is none."""
    devices, requested = _devices(), settings.device
    names = (requested, f"{requested}:0")
    chosen = (device for device in devices if device.metalloid.name in names)
    return next(chosen, devices[0] if devices else None)


def MTLCopyAllDevices() -> tuple[MTLDevice, ...]:
    """Every device."""
    return _devices()
