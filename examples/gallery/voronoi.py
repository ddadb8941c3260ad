"""Stained glass: a Voronoi diagram by jump flooding."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def nearest_seeds(seeds, shape):
    """The number of the nearest seed to each pixel's centre."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    grid = shape[::-1]
    now, then = mtl.Buffer(np.full(shape, -1, np.int32)), mtl.Buffer(np.empty(shape, np.int32))
    lib.voronoi_seed(seeds, now, np.uint32(grid), threads=len(seeds))
    distances = [2**k for k in reversed(range(int(max(shape) - 1).bit_length()))]
    for distance in [*distances, 2, 1]:  # two more passes mend nearly all that the first ones miss
        lib.voronoi_jump(now, then, seeds, distance, threads=grid)
        now, then = then, now
    return now


def picture(size=512, count=220, seed=3):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    seeds = (np.random.default_rng(seed).random((count, 2)) * shape[::-1]).astype(np.float32)
    image = np.zeros((*shape, 4), np.uint8)
    lib.voronoi_show(image, nearest_seeds(seeds, shape), seeds, threads=shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "voronoi.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
