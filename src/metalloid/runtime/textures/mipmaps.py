"""Mip levels: their sizes and their texels."""

from __future__ import annotations

import numpy as np

from metalloid.runtime.textures.pixel_formats import PixelFormat


def mip_shapes(kind: str, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Extents of each level of a full chain: half of those of the level above, rounded down."""
    shapes = [shape]
    while True:
        above = shapes[-1]
        below = tuple(
            max(extent // 2, 1) if axis in _shrinking_axes(kind, len(shape)) else extent
            for axis, extent in enumerate(above)
        )
        if below == above:
            return shapes
        shapes.append(below)


def _shrinking_axes(kind: str, axes: int) -> range:
    """Axes that shrink from level to level: not layers, faces and samples."""
    count = {"1d": 1, "1d_array": 1, "buffer": 1, "3d": 3}.get(kind, 2)
    return range(axes - count, axes)


def smaller(texels: np.ndarray, kind: str, pixel_format: PixelFormat) -> np.ndarray:
    """The texels of the next level: averages of pairs along each axis.

    The last texel of an odd extent is dropped. Integers that are not normalised are not averaged:
    every other one is kept.
    """
    has_channels = pixel_format.channels > 1
    axes = texels.ndim - has_channels
    values = _decoded(texels, pixel_format)
    for axis in _shrinking_axes(kind, axes):
        pairs = values.shape[axis] // 2
        if pairs == 0:
            continue
        first = values[(*(slice(None),) * axis, slice(0, 2 * pairs, 2))]
        second = values[(*(slice(None),) * axis, slice(1, 2 * pairs, 2))]
        with np.errstate(invalid="ignore"):  # infinities
            values = (first + second) / 2 if pixel_format.element_kind == "f" else first
    return _encoded(values, pixel_format)


def _scale(pixel_format: PixelFormat) -> int:
    """The code of 1 in a normalised format; 0 for other formats."""
    is_normalised = pixel_format.component.endswith("norm")
    return np.iinfo(pixel_format.dtype).max if is_normalised else 0


def _decoded(texels: np.ndarray, pixel_format: PixelFormat) -> np.ndarray:
    if pixel_format.element_kind != "f":
        return texels
    values = texels.astype(np.float64) / (_scale(pixel_format) or 1)
    if pixel_format.is_srgb:
        codes = values[..., :3] if pixel_format.channels == 4 else values
        codes[...] = np.where(codes <= 0.04045, codes / 12.92, ((codes + 0.055) / 1.055) ** 2.4)
    return values


def _encoded(values: np.ndarray, pixel_format: PixelFormat) -> np.ndarray:
    if pixel_format.is_srgb:
        colours = values[..., :3] if pixel_format.channels == 4 else values
        colours[...] = np.where(
            colours <= 0.0031308, colours * 12.92, 1.055 * colours ** (1 / 2.4) - 0.055
        )
    if scale := _scale(pixel_format):
        values = np.rint(values * scale)
    return values.astype(pixel_format.dtype)
