"""Neon letters: distances from a text by jump flooding."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import metalloid as mtl


def mask_of(text, shape):
    """The text, as large as the picture allows, in white on black."""
    image = Image.new("L", shape[::-1])
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(shape[1] / (0.62 * len(text)))
    draw.text((shape[1] / 2, shape[0] / 2), text, 255, font, anchor="mm")
    return np.array(image)


def nearest(lib, mask):
    """The nearest pixel of the mask, as x and y, to each pixel."""
    grid = mask.shape[::-1]
    now, then = (np.zeros((*mask.shape, 2), np.int32) for _ in range(2))
    lib.glow_seed(mask, now, threads=grid)
    distances = [2**k for k in reversed(range(int(max(grid) - 1).bit_length()))]
    for distance in [*distances, 2, 1]:
        lib.glow_jump(now, then, distance, threads=grid)
        now, then = then, now
    return now


def picture(size=512, text="metalloid"):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    mask = mask_of(text, (size * 3 // 8, size))
    image = np.zeros((*mask.shape, 4), np.uint8)
    lib.glow_show(
        image, mask, nearest(lib, mask), nearest(lib, 255 - mask), threads=mask.shape[::-1]
    )  # fmt: skip
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "glow.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
