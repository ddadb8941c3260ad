"""The seahorse valley of the Mandelbrot set, lit as a relief."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=512, centre=(-0.7463, 0.1102), height=0.008, iterations=1000):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    image = np.zeros((size * 3 // 4, size, 4), np.uint8)
    lib.mandelbrot(image, np.float32(centre), height, iterations, threads=image.shape[1::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
