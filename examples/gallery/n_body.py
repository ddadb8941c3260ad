"""Two galaxies meet: gravity among all pairs of bodies, in tiles of threadgroup memory."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def galaxies(count, seed=1):
    """Positions with masses, and velocities: two discs that turn around heavy centres."""
    random = np.random.default_rng(seed)
    bodies, velocities = np.zeros((2, count, 4), np.float32)
    half = count // 2
    for k, (centre, drift, tilt) in enumerate(
        [
            ((-1.0, -0.45, 0.0), (0.42, 0.18, 0.0), 0.5),
            ((1.0, 0.45, 0.2), (-0.42, -0.18, 0.0), -0.9),
        ]
    ):
        radius = 0.12 + 0.75 * np.sqrt(random.random(half))
        angle = 2 * np.pi * random.random(half)
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        speed = np.sqrt(1 / radius)
        part = slice(k * half, (k + 1) * half)
        bodies[part, 0] = x
        bodies[part, 1] = y * np.cos(tilt)
        bodies[part, 2] = y * np.sin(tilt) + 0.02 * random.standard_normal(half)
        bodies[part, 3] = 0.25 / half
        velocities[part, 0] = -speed * np.sin(angle)
        velocities[part, 1] = speed * np.cos(angle) * np.cos(tilt)
        velocities[part, 2] = speed * np.cos(angle) * np.sin(tilt)
        bodies[k * half] = 0, 0, 0, 0.9
        velocities[k * half] = 0
        bodies[part, :3] += centre
        velocities[part, :3] += drift
    return bodies, velocities


def picture(size=512, count=8192, steps=90, step=0.012):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    bodies, velocities = (mtl.Buffer(array) for array in galaxies(count))
    moved = mtl.Buffer(np.zeros((count, 4), np.float32))
    planes = mtl.Buffer(np.zeros((2, *shape), np.uint32))
    for k in range(steps):
        lib.n_body_step(bodies, moved, velocities, count, step, threads=count, group_size=256)
        bodies, moved = moved, bodies
        if k >= steps - 4:  # the last steps are exposed
            lib.n_body_expose(bodies, planes, np.uint32(shape[::-1]), count, threads=count)
    image = np.zeros((*shape, 4), np.uint8)
    lib.n_body_develop(image, planes, 0.07, threads=shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "n_body.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
