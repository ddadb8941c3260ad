"""Samplers: Metal's own, by the words that stand for them in a launch."""

from __future__ import annotations

import functools
from typing import Any

from metalloid.errors import ArgumentError
from metalloid.runtime.textures.sampler import settings_of

_ADDRESSES = {"mirrored_repeat": "MirrorRepeat", "clamp_to_border": "ClampToBorderColor"}
_MIP_FILTERS = {"none": "NotMipmapped"}
#: Setting -> what Metal's constants for it begin with, and how it is set.
_CHOICES = {
    "mag_filter": ("MTLSamplerMinMagFilter", "setMagFilter_"),
    "min_filter": ("MTLSamplerMinMagFilter", "setMinFilter_"),
    "mip_filter": ("MTLSamplerMipFilter", "setMipFilter_"),
    "s_address": ("MTLSamplerAddressMode", "setSAddressMode_"),
    "t_address": ("MTLSamplerAddressMode", "setTAddressMode_"),
    "r_address": ("MTLSamplerAddressMode", "setRAddressMode_"),
    "border_color": ("MTLSamplerBorderColor", "setBorderColor_"),
    "compare_func": ("MTLCompareFunction", "setCompareFunction_"),
    "reduction": ("MTLSamplerReductionMode", "setReductionMode_"),
}
#: What Metal's descriptors have from the start; some were added by macOS 26.
_DEFAULTS = {"compare_func": "none", "reduction": "weighted_average", "lod_bias": 0.0}


class Samplers:
    """The samplers of one GPU, each made once.

    Parameters
    ----------
    gpu : MTLDevice
    module : module
        The binding's.
    """

    def __init__(self, gpu: Any, module: Any) -> None:
        self._gpu, self._module = gpu, module
        self.state = functools.cache(self._make)

    def _make(self, word: int) -> Any:
        """The MTLSamplerState of a `Sampler`'s word.

        Raises
        ------
        ArgumentError
            If this system's Metal does not have one of its settings.
        """
        settings = settings_of(word)
        descriptor = self._module.MTLSamplerDescriptor.alloc().init()
        descriptor.setNormalizedCoordinates_(settings["coord"] == "normalized")
        descriptor.setMaxAnisotropy_(settings["max_anisotropy"])
        descriptor.setSupportArgumentBuffers_(True)
        min_lod, max_lod = settings["lod_clamp"]
        descriptor.setLodMinClamp_(min_lod)
        descriptor.setLodMaxClamp_(max_lod)
        for name, (prefix, method) in _CHOICES.items():
            if settings[name] != _DEFAULTS.get(name):
                number = getattr(self._module, prefix + _metals_word(name, settings[name]))
                self._set(descriptor, method, number, name)
        if settings["lod_bias"]:
            self._set(descriptor, "setLodBias_", settings["lod_bias"], "lod_bias")
        return self._gpu.newSamplerStateWithDescriptor_(descriptor)

    def _set(self, descriptor: Any, method: str, value: float, name: str) -> None:
        if not hasattr(descriptor, method):
            raise ArgumentError(f"[Sampler] {name} requires macOS 26 or newer.")
        getattr(descriptor, method)(value)


def _metals_word(name: str, value: str) -> str:
    """``"clamp_to_edge"`` as Metal's constants have it: ``"ClampToEdge"``."""
    special = {"mip_filter": _MIP_FILTERS}.get(name, _ADDRESSES)
    return special.get(value) or value.title().replace("_", "")
