"""Samplers as arguments: how a kernel reads a texture between its texels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metalloid.errors import ArgumentError

_ADDRESSES = ("clamp_to_zero", "clamp_to_edge", "repeat", "mirrored_repeat", "clamp_to_border")
_FILTERS = ("nearest", "linear")
#: Settings by name: first bit of the sampler's word, and values in order (metal_sampler.h).
_FIELDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "coord": (0, ("normalized", "pixel")),
    "s_address": (1, _ADDRESSES),
    "t_address": (4, _ADDRESSES),
    "r_address": (7, _ADDRESSES),
    "border_color": (10, ("transparent_black", "opaque_black", "opaque_white")),
    "mag_filter": (12, _FILTERS),
    "min_filter": (13, _FILTERS),
    "mip_filter": (14, ("none", *_FILTERS)),
    "reduction": (25, ("weighted_average", "minimum", "maximum")),
    "compare_func": (
        16,
        ("none", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always",
         "never"),
    ),
}  # fmt: skip
_MOST_ANISOTROPY_BITS = 31
_ANISOTROPY_BIT, _LOD_LEAST_BIT, _LOD_MOST_BIT, _LOD_BIAS_BIT = 20, 27, 40, 53
_LOD_STEPS, _MOST_LOD = 256, 2**13 - 1
_LOD_BIAS_STEPS, _LOD_BIAS_BITS = 64, 11


class Sampler:
    """The argument for a ``sampler s [[sampler(n)]]`` parameter.

    Parameters
    ----------
    coord : {"normalized", "pixel"}
    address : {"clamp_to_edge", "clamp_to_zero", "clamp_to_border", "repeat", "mirrored_repeat"}
        For all axes; `s_address`, `t_address` and `r_address` for one.
    border_color : {"transparent_black", "opaque_black", "opaque_white"}
    filter : {"nearest", "linear"}
        For both `mag_filter` and `min_filter`.
    mip_filter : {"none", "nearest", "linear"}
    compare_func : {"none", "less", "less_equal", "greater", ..., "always", "never"}
    reduction : {"weighted_average", "minimum", "maximum"}
        What linear filters make of texels; Metal ignores it unless all three are linear.
    lod_clamp : tuple of two floats
        In steps of 1/256.
    lod_bias : float
        Is added to every level of detail: -16 to 15.999, in steps of 1/64.
    max_anisotropy : int
        1 to 16; without effect here, as kernels have no derivatives.

    Attributes
    ----------
    word : int
        All settings as ``metal::sampler`` holds them.

    Raises
    ------
    ArgumentError
        For a value that Metal does not have.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... #include <metal_stdlib>
    ... using namespace metal;
    ... kernel void between(texture1d<float> t, sampler s, device float& y)
    ... { y = t.sample(s, 0.5).r; }
    ... ''')
    >>> y = np.zeros(1, np.float32)
    >>> event = lib.between(np.float32([10, 20]), mtl.Sampler(filter="linear"), y, threads=1)
    >>> y.tolist()
    [15.0]
    """

    def __init__(
        self,
        *,
        coord: str = "normalized",
        address: str = "clamp_to_edge",
        s_address: str | None = None,
        t_address: str | None = None,
        r_address: str | None = None,
        border_color: str = "transparent_black",
        filter: str = "nearest",
        mag_filter: str | None = None,
        min_filter: str | None = None,
        mip_filter: str = "none",
        compare_func: str = "none",
        reduction: str = "weighted_average",
        lod_clamp: Sequence[float] = (0.0, 32.0),
        lod_bias: float = 0.0,
        max_anisotropy: int = 1,
    ) -> None:
        settings = {
            "coord": coord,
            "s_address": s_address or address,
            "t_address": t_address or address,
            "r_address": r_address or address,
            "border_color": border_color,
            "mag_filter": mag_filter or filter,
            "min_filter": min_filter or filter,
            "mip_filter": mip_filter,
            "compare_func": compare_func,
            "reduction": reduction,
        }
        self._settings = settings
        self.word = 0
        for name, value in settings.items():
            bit, values = _FIELDS[name]
            if value not in values:
                raise ArgumentError(
                    f"[Sampler] {name} is one of {', '.join(map(repr, values))}, not {value!r}."
                )
            self.word |= values.index(value) << bit
        if max_anisotropy not in range(1, 17):
            raise ArgumentError(f"[Sampler] max_anisotropy is 1 to 16, not {max_anisotropy!r}.")
        self.word |= max_anisotropy << _ANISOTROPY_BIT
        least, most = (float(lod) for lod in lod_clamp)
        if not 0 <= least <= most:
            raise ArgumentError(
                f"[Sampler] lod_clamp is two numbers, 0 <= least <= most, not {lod_clamp!r}."
            )
        self.word |= _lod_bits(least) << _LOD_LEAST_BIT | _lod_bits(most) << _LOD_MOST_BIT
        if not -16 <= lod_bias < 16:
            raise ArgumentError(f"[Sampler] lod_bias is -16 to 15.999, not {lod_bias!r}.")
        self.word |= _lod_bias_bits(lod_bias) << _LOD_BIAS_BIT

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"Sampler({shown})"


def settings_of(word: int) -> dict[str, Any]:
    """What `Sampler` was told, by its word.

    Examples
    --------
    >>> settings_of(Sampler(filter="linear", lod_bias=-1.5).word)["lod_bias"]
    -1.5
    """
    settings: dict[str, Any] = {
        name: values[word >> bit & (1 << (len(values) - 1).bit_length()) - 1]
        for name, (bit, values) in _FIELDS.items()
    }
    settings["max_anisotropy"] = word >> _ANISOTROPY_BIT & _MOST_ANISOTROPY_BITS
    least, most = (word >> bit & _MOST_LOD for bit in (_LOD_LEAST_BIT, _LOD_MOST_BIT))
    settings["lod_clamp"] = (least / _LOD_STEPS, most / _LOD_STEPS)
    bias = word >> _LOD_BIAS_BIT
    is_negative = bias >> _LOD_BIAS_BITS - 1
    settings["lod_bias"] = (bias - (is_negative << _LOD_BIAS_BITS)) / _LOD_BIAS_STEPS
    return settings


def _lod_bits(lod: float) -> int:
    return min(int(min(lod, 32) * _LOD_STEPS + 0.5), _MOST_LOD)


def _lod_bias_bits(bias: float) -> int:
    most = (1 << _LOD_BIAS_BITS - 1) - 1
    return min(math.floor(bias * _LOD_BIAS_STEPS + 0.5), most) % (1 << _LOD_BIAS_BITS)
