"""A scene of signed distances, sphere traced, with soft shadows and ambient occlusion."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=512, eye=(3.4, 2.6, -4.4)):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    image = np.zeros((size * 3 // 4, size, 4), np.uint8)
    lib.ray_marcher(image, np.float32([*eye, 0]), threads=image.shape[1::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "ray_marcher.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
