"""Reads and samples of textures, as the functions of ``metal/textures.metal`` take them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.text import text_of
from metalloid.differentiate.program.tree import Expression, Program
from metalloid.differentiate.program.types import Type
from metalloid.kernels.sources import metal_source
from metalloid.msl.layout import Layout
from metalloid.runtime.textures.descriptor import KIND_EXTENTS
from metalloid.runtime.textures.mipmaps import mip_shapes
from metalloid.runtime.textures.sampler import Sampler, settings_of
from metalloid.runtime.textures.texture import Texture


class _Kind(NamedTuple):
    """Axes of coordinates, and the slice of a texel as the arguments after them name it."""

    axes: int
    slices: tuple[str, ...] = ()


_KINDS = {
    "1d": _Kind(1), "1d_array": _Kind(1, ("{}",)), "2d": _Kind(2), "2d_array": _Kind(2, ("{}",)),
    "3d": _Kind(3), "cube": _Kind(2, ("{}",)), "cube_array": _Kind(2, ("{}", "6 * {}")),
    "2d_ms": _Kind(2, ("{}",)), "_buffer": _Kind(1),
}  # fmt: skip
#: Settings in the order of the members of `adjoint_sampler`, and the numbers of their values.
_ADDRESSES = ("clamp_to_zero", "clamp_to_edge", "repeat", "mirrored_repeat", "clamp_to_border")
_FILTERS = ("nearest", "linear")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "coord": ("normalized", "pixel"), "s_address": _ADDRESSES, "t_address": _ADDRESSES,
    "r_address": _ADDRESSES,
    "border_color": ("transparent_black", "opaque_black", "opaque_white"),
    "mag_filter": _FILTERS, "min_filter": _FILTERS, "mip_filter": ("none", *_FILTERS),
}  # fmt: skip
#: Settings that derivatives do not know.
_UNKNOWN = ("reduction", "lod_clamp", "lod_bias")


@dataclass
class TextureCall:
    """A read, a sample or a gather.

    Attributes
    ----------
    texture, sampler : str
    texel : str
        The number of the texel that is read.
    coordinate : Expression
    axes : int
        Of the coordinate.
    position : str
        Where the sample is.
    lod : Expression or None
        The level of detail, if it is not 0.
    component : str
        The number of the component that is gathered.
    """

    texture: str
    sampler: str
    texel: str
    coordinate: Expression
    axes: int
    position: str = ""
    lod: Expression | None = None
    component: str = "0"


def texel_number(texture: Expression, indices: Sequence[Expression]) -> str:
    """The number of a texel in memory, from what a read or a write names it by."""
    kind = _kind(texture.type)
    coordinate, *others = indices
    at = text_of(coordinate)
    parts = [
        part.format(f"uint({text_of(index)})")
        for part, index in zip(kind.slices, others, strict=False)
    ]
    slices = " + ".join(parts) or "0"
    position = {1: f"uint3({at}, 0, {slices})", 2: f"uint3(uint2({at}), {slices})"}.get(
        kind.axes, f"uint3({at})"
    )
    levels = others[len(kind.slices) :]
    return f"adjoint_texel({texture.name}, {position}, {text_of(levels[0]) if levels else '0'})"


def texture_call(value: Expression, location: Any) -> TextureCall:
    """A call of a member function of a texture.

    Raises
    ------
    Refused
        If it has no derivative.
    """
    texture, *args = value.args
    if value.name == "read":
        texel = texel_number(texture, args)
        return TextureCall(texture.name, "", texel, args[0], _kind(texture.type).axes)
    name = f"{texture.type.texture[0]}::{value.name}" if texture.type.texture else value.name
    if value.name not in ("sample", "gather") or "cube" in name:
        raise Refused(location, f"{name} has no derivative here")
    kind = _kind(texture.type)
    sampler, coordinate, *others = args
    call = TextureCall(texture.name, sampler.name, "", coordinate, kind.axes)
    offset = ["0", "0", "0"]
    slices = f"float({text_of(others.pop(0))})" if kind.slices else "0"
    for arg in others:
        if arg.op == "constant" and "::" in arg.name:
            call.component = str("xyzw".index(arg.name[-1]))
        elif arg.op == "option" and arg.name in ("level", "bias"):
            call.lod = arg.args[0]
        elif arg.op == "option":
            raise Refused(location, f"{name} with {arg.name} has no derivative here")
        else:
            text = f"int{kind.axes if kind.axes > 1 else ''}({text_of(arg)})"
            offset = [text] + ["0"] * (3 - kind.axes)
    at = ", ".join([text_of(coordinate), *["0"] * (3 - kind.axes)])
    call.position = (
        f"adjoint_position{{float3({at}), int3({', '.join(offset)}), {slices}, {kind.axes}}}"
    )
    return call


def _kind(type_: Type) -> _Kind:
    name = type_.texture[0] if type_.texture else ""
    return _KINDS[name.removeprefix("texture").removeprefix("depth")]


def uses_textures(program: Program) -> bool:
    """Whether a program has textures of floating-point numbers."""
    return any(parameter.type.has_texel_derivatives for parameter in program.parameters)


def texture_functions(program: Program) -> str:
    """The text of the functions that derivatives of textures call."""
    if not uses_textures(program):
        return ""
    return metal_source("metalloid.differentiate.metal", "textures") + "\n"


def sampler_lines(program: Program, used: Mapping[str, str]) -> list[str]:
    """Declarations of samplers, and of the settings of those that derivatives read.

    Parameters
    ----------
    used : mapping
        Names of settings by those of samplers.
    """
    lines = [each.declaration for each in program.samplers.values() if each.declaration]
    for name, settings_name in used.items():
        settings = program.samplers[name].settings
        if settings is not None:
            numbers = ", ".join(map(str, setting_numbers(Sampler(**settings))))  # type: ignore[arg-type]
            lines.append(f"const adjoint_sampler {settings_name} = {{{numbers}}};")
    return lines


def sampler_parameters(program: Program, used: Mapping[str, str]) -> dict[str, str]:
    """Names of settings that a launch passes, and of the samplers that they belong to."""
    return {
        settings_name: name
        for name, settings_name in used.items()
        if program.samplers[name].settings is None
    }


def unknown_settings(settings: Mapping[str, Any]) -> list[str]:
    """Names of settings that derivatives do not know."""
    usual = settings_of(Sampler().word)
    return [n for n in _UNKNOWN if n in settings and settings[n] != usual[n]]


def setting_numbers(sampler: Sampler) -> tuple[int, ...]:
    """The members of `adjoint_sampler`."""
    settings = settings_of(sampler.word)
    return tuple(values.index(settings[name]) for name, values in _MEMBERS.items())


def bytes_of_texels(value: Any, layout: Layout) -> int:
    """Bytes of the derivative of a texture, or of an array that is passed for one."""
    assert layout.texture is not None
    kind = layout.texture.kind
    if isinstance(value, Texture):
        shapes = mip_shapes(kind, value.shape)[: value.levels]
    else:
        shapes = [np.shape(value)[: len(KIND_EXTENTS[kind])]]
    return sum(map(math.prod, shapes)) * (4 if layout.texture.is_depth else 16)
