"""Six filters on one picture: noise, bilateral, Sobel, Kuwahara, halftone, emboss."""

import sys
from pathlib import Path

import numpy as np
import ray_marcher
from PIL import Image

import metalloid as mtl

FILTERS = ("noise", "bilateral", "sobel", "kuwahara", "halftone", "emboss")


def filtered(image, name):
    """The picture after one of the filters."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    result = np.zeros_like(image)
    amount = (0.45,) if name == "noise" else ()
    lib.function(f"filter_{name}")(image, result, *amount, threads=image.shape[1::-1])
    return result


def picture(size=510):
    image = ray_marcher.picture(size // 3, eye=(2.4, 2.3, -3.3))
    noisy = filtered(image, "noise")
    panels = [
        noisy if name == "noise" else filtered(noisy if name == "bilateral" else image, name)
        for name in FILTERS
    ]
    return np.vstack([np.hstack(panels[:3]), np.hstack(panels[3:])])


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "image_filters.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
