"""Waves at two slits and a lens: the wave equation in the plane."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def medium(size):
    """Squared speed of the waves: zero in the wall, low in a lens."""
    y, x = np.mgrid[: size * 3 // 4, :size] / size
    speed = np.full(x.shape, 0.25, np.float32)
    speed[np.hypot((x - 0.72) * 2.2, y - 0.375) < 0.16] = 0.11
    wall = np.abs(x - 0.36) < 0.008
    speed[wall & (np.abs(np.abs(y - 0.375) - 0.085) > 0.018)] = 0
    return speed


def picture(size=512, steps=1100):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    speed = medium(size)
    grid = speed.shape[::-1]
    now, before = (mtl.Buffer(np.zeros(speed.shape, np.float32)) for _ in range(2))
    for step in range(steps):
        source = np.sin(0.23 * step) * min(1.0, step / 60)
        lib.wave_step(now, before, speed, source, threads=grid)
        now, before = before, now
    image = np.zeros((*speed.shape, 4), np.uint8)
    lib.wave_show(image, now, speed, threads=grid)
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "wave.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
