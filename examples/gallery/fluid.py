"""A fluid (Stam's stable fluids) that three jets stir; textures and samplers carry its fields."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def picture(size=384, steps=220, iterations=16):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    shape = (size * 3 // 4, size)
    grid = shape[::-1]
    velocity, other_velocity = (np.zeros((*shape, 2), np.float32) for _ in range(2))
    dye, other_dye = (np.zeros((*shape, 4), np.float32) for _ in range(2))
    pressure, other_pressure, divergence = (np.zeros(shape, np.float32) for _ in range(3))
    for step in range(steps):
        lib.fluid_stir(velocity, dye, float(step), threads=grid)
        lib.fluid_confine(velocity, other_velocity, 0.25, threads=grid)
        lib.fluid_advect(other_velocity, other_velocity, velocity, 1.0, 0.9995, threads=grid)
        lib.fluid_divergence(velocity, divergence, threads=grid)
        for _ in range(iterations):
            lib.fluid_relax(divergence, pressure, other_pressure, threads=grid)
            pressure, other_pressure = other_pressure, pressure
        lib.fluid_project(velocity, other_velocity, pressure, threads=grid)
        lib.fluid_advect(other_velocity, dye, other_dye, 1.0, 0.998, threads=grid)
        velocity, other_velocity = other_velocity, velocity
        dye, other_dye = other_dye, dye
    image = np.zeros((*shape, 4), np.uint8)
    lib.fluid_show(image, dye, threads=grid)
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "fluid.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
