"""A map: a landscape of noise, and its contours by marching squares with an atomic counter."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def lines_of(heights, levels):
    """The lines of all levels, as rows x0, y0, x1, y1, in no order."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    rows, columns = heights.shape
    lines = np.zeros((8 * heights.size, 4), np.float32)
    count = np.zeros(1, np.uint32)
    lib.contours_march(
        heights, lines, count, len(lines), levels, threads=(columns - 1, rows - 1)
    )  # fmt: skip
    return lines[: count[0]]


def picture(size=512, zoom=2, levels=28, seed=12):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    heights = np.zeros((size * 3 // 4 // zoom, size // zoom), np.float32)
    lib.contours_terrain(heights, 4.0, seed, threads=heights.shape[::-1])
    shape = (heights.shape[0] * zoom, heights.shape[1] * zoom)
    ink = np.zeros(shape, np.uint32)
    lines = lines_of(heights, levels)
    lib.contours_draw(lines, ink, np.uint32(shape[::-1]), zoom, threads=len(lines))
    image = np.zeros((*shape, 4), np.uint8)
    lib.contours_show(image, heights, ink, zoom, threads=shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "contours.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
