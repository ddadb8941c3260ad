"""Magnetic domains: the Ising model near its critical temperature."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl

#: Onsager's critical coupling J / kT of the square lattice.
CRITICAL = np.log(1 + np.sqrt(2)) / 2


def sweeps(spins, coupling, steps):
    """The spins, -1 and 1, after some sweeps."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    rows, columns = spins.shape
    spins = mtl.Buffer(spins)
    for step in range(2 * steps):
        lib.ising_flip(spins, coupling, step % 2, step, threads=(columns // 2, rows))
    return np.asarray(spins).reshape(rows, columns)


def picture(size=512, steps=600, seed=6):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    spins = np.random.default_rng(seed).choice(np.int8([-1, 1]), (size * 3 // 4, size))
    spins = sweeps(spins, 1.005 * CRITICAL, steps)
    image = np.zeros((*spins.shape, 4), np.uint8)
    lib.ising_show(image, spins, threads=spins.shape[::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "ising.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
