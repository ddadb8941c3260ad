"""A Julia set with smooth colours and an orbit trap."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=512, c=(-0.79, 0.15), iterations=200):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    image = np.zeros((size * 3 // 4, size, 4), np.uint8)
    lib.julia(image, np.float32(c), iterations, threads=image.shape[1::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "julia.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
