"""Coral by reaction and diffusion: Gray and Scott's model, shaded as a relief."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def start(size, seed=2):
    """The substances u and v: u everywhere, and v in a few squares."""
    cells = np.zeros((size * 3 // 4, size, 2), np.float32)
    cells[..., 0] = 1
    for y, x in np.random.default_rng(seed).random((30, 2)) * (cells.shape[0] - 12, size - 12):
        cells[int(y) : int(y) + 10, int(x) : int(x) + 10] = 0.5, 0.25
    return cells


def picture(size=320, steps=5000, feed=0.0545, kill=0.062):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    cells = start(size)
    grid = cells.shape[1::-1]
    now, then = mtl.Buffer(cells), mtl.Buffer(cells)
    for _ in range(steps):
        lib.react(now, then, feed, kill, threads=grid)
        now, then = then, now
    image = np.zeros((*cells.shape[:2], 4), np.uint8)
    lib.react_show(image, now, threads=grid)
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "reaction_diffusion.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
