"""Slime mould: agents that follow and leave trails build a network of veins."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=512, count=60_000, steps=260, seed=8):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    grid = shape[::-1]
    random = np.random.default_rng(seed)
    agents = np.zeros((count, 4), np.float32)
    agents[:, :2] = random.random((count, 2)) * grid
    agents[:, 2] = 2 * np.pi * random.random(count)
    agents = mtl.Buffer(agents)
    visits = mtl.Buffer(np.zeros(shape, np.uint32))
    trail, other = (mtl.Buffer(np.zeros(shape, np.float32)) for _ in range(2))
    extent = np.uint32(grid)
    for step in range(steps):
        lib.slime_move(agents, trail, extent, step, threads=count)
        lib.slime_deposit(agents, visits, extent, threads=count)
        lib.slime_diffuse(trail, other, visits, threads=grid)
        trail, other = other, trail
    image = np.zeros((*shape, 4), np.uint8)
    lib.slime_show(image, trail, threads=grid)
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "slime.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
