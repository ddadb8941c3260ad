"""Fits Gaussian splats to a picture, by the gradient of the kernel that draws them.

    python examples/fit_splats.py [fitted_splats.png] [steps]

Draws the picture, the splats before, and the splats after gradient descent (Adam).
"""

import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl

WIDTH, HEIGHT, COLUMNS = 120, 90, 12


def picture():
    """A sun over hills, of floats."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] / WIDTH
    sky = np.stack([0.95 - 0.5 * (0.75 - y), 0.35 + 0.6 * y, 0.75 - 0.5 * y], -1)
    disc = np.hypot(x - 0.62, y - 0.28) < 0.12
    sky[disc] = (1, 0.85, 0.35)
    far = y > 0.48 + 0.07 * np.sin(9 * x + 1)
    sky[far] = (0.35, 0.25, 0.45)
    near = y > 0.58 + 0.05 * np.sin(14 * x)
    sky[near] = (0.12, 0.10, 0.22)
    return sky.astype(np.float32)


def first_splats():
    """Splats on a grid, of one colour."""
    y, x = np.mgrid[: COLUMNS * HEIGHT // WIDTH, :COLUMNS] / COLUMNS + 0.5 / COLUMNS
    splats = np.zeros((x.size, 8), np.float32)
    splats[:, 0], splats[:, 1] = x.ravel(), y.ravel()
    splats[:, 2:4] = np.log(0.5 / COLUMNS)
    splats[:, 5:] = 0.15
    return splats


def main():
    """Fit, and save the pictures next to each other."""
    file = sys.argv[1] if len(sys.argv) > 1 else "fitted_splats.png"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    target, splats = mtl.asarray(picture()), mtl.asarray(first_splats())
    count = splats.shape[0]

    def drawn(splats):
        image = mtl.zeros((HEIGHT, WIDTH, 3), dtype=mtl.float32)
        lib.draw_splats(splats, image, count, threads=(WIDTH, HEIGHT))
        return image

    def loss(splats):
        return ((drawn(splats) - target) ** 2).mean()

    gradient = mtl.value_and_grad(loss)
    before, start = drawn(splats), time.perf_counter()
    mean, square = mtl.zeros_like(splats), mtl.zeros_like(splats)
    for step in range(1, steps + 1):
        error, g = gradient(splats)
        mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g * g
        root = mtl.sqrt(square / (1 - 0.99**step)) + 1e-8
        splats = splats - 0.02 * mean / (1 - 0.9**step) / root
        mtl.eval(splats, mean, square)
        if step in (1, steps):
            print(f"step {step}: mean squared error {float(error):.4f}")
    print(f"{count} splats, {(time.perf_counter() - start) / steps * 1e3:.0f} ms a step")
    row = np.concatenate([np.asarray(each) for each in (target, before, drawn(splats))], 1)
    Image.fromarray((row.clip(0, 1) * 255).astype(np.uint8)).save(file)


if __name__ == "__main__":
    main()
