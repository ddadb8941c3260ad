"""A fractal flame: the chaos game by thousands of threads, with atomic counts per pixel."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=512, threads=16384, steps=420):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    visits = np.zeros((*shape, 4), np.uint32)
    lib.flame_iterate(visits, np.uint32(shape[::-1]), steps, threads=threads)
    image = np.zeros((*shape, 4), np.uint8)
    mean = visits[..., 0].mean()
    lib.flame_develop(image, visits, mean, threads=shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "flame.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
