"""A path tracer: diffuse walls, a mirror, glass and a lamp; samples are added over launches."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl

DIFFUSE, MIRROR, GLASS = 0, 1, 2
#: x, y, z, radius; red, green, blue, kind
SPHERES = np.float32([
    [-0.95, -0.80, 1.3, 0.7, 0.95, 0.95, 0.95, MIRROR],
    [0.85, -0.95, 0.1, 0.55, 0.98, 1.0, 0.99, GLASS],
    [0.0, -1.2, 0.9, 0.3, 0.95, 0.65, 0.1, DIFFUSE],
    [-0.5, -1.28, -0.5, 0.22, 0.2, 0.7, 0.3, DIFFUSE],
    [1.45, -1.1, 1.9, 0.4, 0.6, 0.25, 0.7, DIFFUSE],
])  # fmt: skip


def picture(size=400, launches=8, samples=12, spheres=SPHERES):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    image = np.zeros((size * 3 // 4, size, 4), np.uint8)
    grid = image.shape[1::-1]
    sums = mtl.Buffer(np.zeros((*image.shape[:2], 4), np.float32))  # stays on the device
    spheres = spheres.view(lib.trace_paths.dtype("spheres"))
    for seed in range(launches):
        lib.trace_paths(sums, spheres, len(spheres), samples, seed, threads=grid)
    lib.tone_map(image, sums, threads=grid)
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "path_tracer.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
