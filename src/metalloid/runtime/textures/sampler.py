"""Samplers as arguments of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
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
_ANISOTROPY_MASK = 31
_ANISOTROPY_BIT, _LOD_MIN_BIT, _LOD_MAX_BIT, _LOD_BIAS_BIT = 20, 27, 40, 53
_LOD_STEPS, _LOD_MASK = 256, 2**13 - 1
_LOD_BIAS_STEPS, _LOD_BIAS_BITS = 64, 11


class Sampler:
    """An argument for a ``sampler s [[sampler(n)]]`` parameter.

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
        How linear filters combine texels; Metal ignores it unless all three filters are linear.
    lod_clamp : tuple of two floats
        In steps of 1/256.
    lod_bias : float
        Added to every level of detail: -16 to 15.999, in steps of 1/64.
    max_anisotropy : int
        1 to 16; has no effect, because kernels have no derivatives.

    Attributes
    ----------
    word : int
        All settings, encoded as in ``metal::sampler``.

    Raises
    ------
    ArgumentError
        If Metal does not have a value.

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
                    f"[Sampler] {name} must be one of {', '.join(map(repr, values))}, "
                    f"got {value!r}."
                )
            self.word |= values.index(value) << bit
        if max_anisotropy not in range(1, 17):
            raise ArgumentError(
                f"[Sampler] max_anisotropy must be 1 to 16, got {max_anisotropy!r}."
            )
        self.word |= max_anisotropy << _ANISOTROPY_BIT
        try:
            low, high = (float(lod) for lod in lod_clamp)
        except (TypeError, ValueError):
            low = high = math.nan
        if not 0 <= low <= high:
            raise ArgumentError(
                f"[Sampler] lod_clamp must be two numbers, 0 <= min <= max, got {lod_clamp!r}."
            )
        self.word |= _lod_bits(low) << _LOD_MIN_BIT | _lod_bits(high) << _LOD_MAX_BIT
        if not (isinstance(lod_bias, Real) and -16 <= lod_bias < 16):
            raise ArgumentError(f"[Sampler] lod_bias must be -16 to 15.999, got {lod_bias!r}.")
        self.word |= _lod_bias_bits(lod_bias) << _LOD_BIAS_BIT

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"Sampler({shown})"


def settings_of(word: int) -> dict[str, Any]:
    """The settings of a `Sampler`, from its word.

    Examples
    --------
    >>> settings_of(Sampler(filter="linear", lod_bias=-1.5).word)["lod_bias"]
    -1.5
    """
    settings: dict[str, Any] = {
        name: values[word >> bit & (1 << (len(values) - 1).bit_length()) - 1]
        for name, (bit, values) in _FIELDS.items()
    }
    settings["max_anisotropy"] = word >> _ANISOTROPY_BIT & _ANISOTROPY_MASK
    low, high = (word >> bit & _LOD_MASK for bit in (_LOD_MIN_BIT, _LOD_MAX_BIT))
    settings["lod_clamp"] = (low / _LOD_STEPS, high / _LOD_STEPS)
    bias = word >> _LOD_BIAS_BIT
    is_negative = bias >> _LOD_BIAS_BITS - 1
    settings["lod_bias"] = (bias - (is_negative << _LOD_BIAS_BITS)) / _LOD_BIAS_STEPS
    return settings


def _lod_bits(lod: float) -> int:
    return min(int(min(lod, 32) * _LOD_STEPS + 0.5), _LOD_MASK)


def _lod_bias_bits(bias: float) -> int:
    largest = (1 << _LOD_BIAS_BITS - 1) - 1
    return min(math.floor(bias * _LOD_BIAS_STEPS + 0.5), largest) % (1 << _LOD_BIAS_BITS)
