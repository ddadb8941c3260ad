"""The Buddhabrot: paths of the points that leave the Mandelbrot set, by length."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=448, threads=65536, samples=24, limits=(1000, 150, 30)):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    planes = np.zeros((3, *shape), np.uint32)
    lib.buddhabrot_orbits(
        planes, np.uint32(shape[::-1]), np.uint32([*limits, 0]), samples, threads=threads
    )  # fmt: skip
    exposure = 1.1 / np.percentile(planes, 97, axis=(1, 2)).clip(1)
    image = np.zeros((*shape, 4), np.uint8)
    lib.buddhabrot_develop(image, planes, np.float32([*exposure, 0]), threads=shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "buddhabrot.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
