"""Conway's Game of Life; colours show the age of cells and fade where cells have died."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def soup(size, seed=4):
    """Random cells in the middle of a dead field."""
    cells = np.zeros((size * 3 // 4, size), np.uint8)
    rows, columns = (n // 3 for n in cells.shape)
    middle = np.random.default_rng(seed).random((rows, columns)) < 0.35
    cells[rows : 2 * rows, columns : 2 * columns] = middle
    return cells


def generations(cells, steps):
    """The cells after some steps, and how recently each position was alive."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    grid = cells.shape[::-1]
    now, then = mtl.Buffer(cells), mtl.Buffer(np.zeros_like(cells))
    warmth = mtl.Buffer(np.zeros(cells.shape, np.float32))
    for _ in range(steps):
        lib.life_step(now, then, threads=grid)
        lib.life_fade(warmth, then, threads=cells.size)
        now, then = then, now
    return now, warmth


def picture(size=512, zoom=2, steps=300):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    cells = soup(size // zoom)
    now, warmth = generations(cells, steps)
    image = np.zeros((cells.shape[0] * zoom, cells.shape[1] * zoom, 4), np.uint8)
    lib.life_show(image, now, warmth, zoom, threads=image.shape[1::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "life.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
