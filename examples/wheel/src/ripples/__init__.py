"""Rings around the centre of a picture."""

from importlib.resources import as_file, files

import numpy as np

import metalloid as mtl

with as_file(files(__name__) / "kernels.mtlb") as path:
    _LIBRARY = mtl.load_library(path)


def ripples(height: int, width: int, wavelength: float) -> np.ndarray:
    """Grey values of rings that are `wavelength` pixels apart."""
    picture = np.empty((height, width), np.float32)
    _LIBRARY.ripples(picture, wavelength, threads=(width, height))
    return picture
