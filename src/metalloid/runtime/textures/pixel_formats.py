"""Pixel formats by Metal's names."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

#: Component types in the order of `component` in texture_memory.h: suffix and dtype.
_COMPONENTS = (
    ("8unorm", "uint8"), ("8snorm", "int8"), ("8uint", "uint8"), ("8sint", "int8"),
    ("16unorm", "uint16"), ("16snorm", "int16"), ("16uint", "uint16"), ("16sint", "int16"),
    ("16float", "float16"), ("32uint", "uint32"), ("32sint", "int32"), ("32float", "float32"),
)  # fmt: skip
_CHANNELS = {"r": 1, "rg": 2, "rgba": 4}
_SRGB, _BGRA = 0x40, 0x80


@dataclass(frozen=True)
class PixelFormat:
    """The layout of a texel in memory.

    Attributes
    ----------
    name : str
        Metal's, in lower case: ``"rgba8unorm"``.
    component : str
        ``"8unorm"``.
    channels : int
    code : int
        Its code in the standard library (texture_memory.h).
    """

    name: str
    component: str
    channels: int
    code: int

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """The type of one component."""
        return np.dtype(dict(_COMPONENTS)[self.component])

    @property
    def bytes(self) -> int:
        """The bytes of one texel."""
        return self.channels * self.dtype.itemsize

    @property
    def element_kind(self) -> str:
        """Kind of the textures that can read it: ``"f"``, ``"i"`` or ``"u"``."""
        return {"uint": "u", "sint": "i"}.get(self.component.lstrip("0123456789"), "f")

    @property
    def is_srgb(self) -> bool:
        """Whether colours are stored by their sRGB codes."""
        return bool(self.code & _SRGB)


def _all_formats() -> dict[str, PixelFormat]:
    formats = {}
    for number, (component, _) in enumerate(_COMPONENTS):
        for prefix, channels in _CHANNELS.items():
            code = number | (channels - 1) << 4
            name = prefix + component
            formats[name] = PixelFormat(name, component, channels, code)
            if component == "8unorm":
                formats[f"{name}_srgb"] = PixelFormat(
                    f"{name}_srgb", component, channels, code | _SRGB
                )
    for name in ("rgba8unorm", "rgba8unorm_srgb"):
        swapped = "bgra" + name.removeprefix("rgba")
        formats[swapped] = PixelFormat(swapped, "8unorm", 4, formats[name].code | _BGRA)
    for name, same in (("depth16unorm", "r16unorm"), ("depth32float", "r32float")):
        formats[name] = PixelFormat(name, formats[same].component, 1, formats[same].code)
    return formats


FORMATS = _all_formats()

#: Component types by dtype, for textures of floats, of signed and of unsigned integers.
_BY_DTYPE = {
    "f": {"uint8": "8unorm", "int8": "8snorm", "uint16": "16unorm", "int16": "16snorm",
          "float16": "16float", "float32": "32float"},
    "u": {"uint8": "8uint", "uint16": "16uint", "uint32": "32uint"},
    "i": {"int8": "8sint", "int16": "16sint", "int32": "32sint"},
}  # fmt: skip
#: The format of textures of ulong: one number in two components, from an array of uint64.
LONG_FORMAT = FORMATS["rg32uint"]


@functools.cache
def format_of(dtype: np.dtype, channels: int, element_kind: str) -> PixelFormat | None:
    """The format of an array's texels as textures of `element_kind` read them; None without one."""
    component = _BY_DTYPE[element_kind].get(dtype.name)
    prefix = next((p for p, count in _CHANNELS.items() if count == channels), None)
    if component is None or prefix is None or not dtype.isnative:
        return None
    return FORMATS[prefix + component]


def dtypes_of(element_kind: str) -> tuple[str, ...]:
    """Names of the dtypes that textures of `element_kind` can read."""
    return tuple(_BY_DTYPE[element_kind])
