"""Samplers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import metalloid as mtl
from metalloid.compat.Metal import constants
from metalloid.compat.Metal.conversions import optional_text, unsigned
from metalloid.compat.Metal.descriptors import Descriptor, setting
from metalloid.compat.Metal.failures import fail
from metalloid.compat.Metal.objects import MetalObject
from metalloid.compat.Metal.structures import MTLResourceID

if TYPE_CHECKING:
    from metalloid.compat.Metal.device import MTLDevice

#: Metalloid's words for Metal's numbers.
_ADDRESSES = {
    constants.MTLSamplerAddressModeClampToEdge: "clamp_to_edge",
    constants.MTLSamplerAddressModeRepeat: "repeat",
    constants.MTLSamplerAddressModeMirrorRepeat: "mirrored_repeat",
    constants.MTLSamplerAddressModeClampToZero: "clamp_to_zero",
    constants.MTLSamplerAddressModeClampToBorderColor: "clamp_to_border",
}
_WORDS = {
    "mag_filter": ("nearest", "linear"),
    "min_filter": ("nearest", "linear"),
    "mip_filter": ("none", "nearest", "linear"),
    "border_color": ("transparent_black", "opaque_black", "opaque_white"),
    "reduction": ("weighted_average", "minimum", "maximum"),
    "compare_func": (
        "never", "less", "equal", "less_equal", "greater", "not_equal", "greater_equal", "always",
    ),
}  # fmt: skip
_MAX_LOD = 3.4028234663852886e38  # FLT_MAX


class MTLSamplerDescriptor(Descriptor):
    """The description of a sampler."""

    __slots__ = ()

    label, setLabel_ = setting("label", None, optional_text)
    minFilter, setMinFilter_ = setting("minFilter", 0, unsigned)
    magFilter, setMagFilter_ = setting("magFilter", 0, unsigned)
    mipFilter, setMipFilter_ = setting("mipFilter", 0, unsigned)
    sAddressMode, setSAddressMode_ = setting("sAddressMode", 0, unsigned)
    tAddressMode, setTAddressMode_ = setting("tAddressMode", 0, unsigned)
    rAddressMode, setRAddressMode_ = setting("rAddressMode", 0, unsigned)
    borderColor, setBorderColor_ = setting("borderColor", 0, unsigned)
    compareFunction, setCompareFunction_ = setting("compareFunction", 0, unsigned)
    reductionMode, setReductionMode_ = setting("reductionMode", 0, unsigned)
    maxAnisotropy, setMaxAnisotropy_ = setting("maxAnisotropy", 1, unsigned)
    lodMinClamp, setLodMinClamp_ = setting("lodMinClamp", 0.0, float)
    lodMaxClamp, setLodMaxClamp_ = setting("lodMaxClamp", _MAX_LOD, float)
    lodBias, setLodBias_ = setting("lodBias", 0.0, float)
    normalizedCoordinates, setNormalizedCoordinates_ = setting("normalizedCoordinates", True, bool)
    supportArgumentBuffers, setSupportArgumentBuffers_ = setting(
        "supportArgumentBuffers", False, bool
    )


class MTLSamplerState(MetalObject):
    """A sampler.

    Attributes
    ----------
    sampler : Sampler
    """

    __slots__ = ("sampler",)

    def __init__(self, device: MTLDevice, sampler: mtl.Sampler) -> None:
        super().__init__(device)
        self.sampler = sampler

    def gpuResourceID(self) -> MTLResourceID:
        """Its handle in an argument buffer."""
        return MTLResourceID(self.sampler.word)


def sampler_state(device: MTLDevice, descriptor: MTLSamplerDescriptor) -> MTLSamplerState:
    """The result of ``newSamplerStateWithDescriptor:``."""
    numbers = {
        "mag_filter": descriptor.magFilter(), "min_filter": descriptor.minFilter(),
        "mip_filter": descriptor.mipFilter(), "border_color": descriptor.borderColor(),
        "reduction": descriptor.reductionMode(), "compare_func": descriptor.compareFunction(),
    }  # fmt: skip
    addresses = {
        "s_address": descriptor.sAddressMode(), "t_address": descriptor.tAddressMode(),
        "r_address": descriptor.rAddressMode(),
    }  # fmt: skip
    try:
        sampler = mtl.Sampler(
            coord="normalized" if descriptor.normalizedCoordinates() else "pixel",
            lod_clamp=(descriptor.lodMinClamp(), descriptor.lodMaxClamp()),
            lod_bias=descriptor.lodBias(),
            max_anisotropy=descriptor.maxAnisotropy(),
            **{name: _WORDS[name][number] for name, number in numbers.items()},
            **{name: _ADDRESSES[number] for name, number in addresses.items()},
        )
    except (LookupError, mtl.ArgumentError) as failure:
        fail("MTLDevice newSamplerStateWithDescriptor:", f"invalid descriptor: {failure}")
    state = MTLSamplerState(device, sampler)
    state.setLabel_(descriptor.label())
    return state
