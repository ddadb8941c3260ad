"""Gaussian splats: a torus knot of 3-D Gaussians, projected, sorted by depth and blended."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl


def knot(count, seed=7):
    """Gaussians along a torus knot: centres with opacity, three scaled axes each, and colours."""
    random = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(count) / count

    def curve(t):
        ring = 1 + 0.42 * np.cos(3 * t)
        return np.stack([ring * np.cos(2 * t), ring * np.sin(2 * t), 0.55 * np.sin(3 * t)], -1)

    along = curve(t + 1e-3) - curve(t - 1e-3)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(along, random.standard_normal((count, 3)))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    centres = np.ones((count, 4), np.float32)
    centres[:, :3] = curve(t) + across * 0.19 * np.sqrt(random.random((count, 1)))
    centres[:, 3] = 0.75
    axes = np.zeros((count, 3, 4), np.float32)
    axes[..., :3] = np.stack([0.10 * along, 0.022 * across, 0.022 * np.cross(along, across)], 1)
    colours = np.ones((count, 4), np.float32)
    phases = t[:, None] / (2 * np.pi) + np.array([0, 0.33, 0.67])
    shade = 0.65 + 0.5 * (across @ np.array([0.4, 0.7, 0.6]))[:, None]
    colours[:, :3] = np.clip((0.5 + 0.45 * np.cos(2 * np.pi * phases)) * shade, 0, 1)
    return centres, axes, colours


def picture(size=448, count=3000, eye=(1.2, 1.5, -5.0)):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    centres, axes, colours = knot(count)
    shape = (size * 3 // 4 // 16 * 16, size // 16 * 16)
    splats = np.zeros(count, lib.splat_project.dtype("splats"))
    depths = np.zeros(count, np.float32)
    lib.splat_project(
        centres, axes, colours, splats, depths, np.float32([*eye, 0]), np.float32(shape[::-1]),
        threads=count,
    )  # fmt: skip
    order = mtl.astype(mtl.argsort(mtl.asarray(depths)), mtl.uint32)
    image = np.zeros((*shape, 4), np.uint8)
    lib.splat_blend(image, splats, order, count, threads=shape[::-1], group_size=(16, 16))
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "gaussian_splats.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
