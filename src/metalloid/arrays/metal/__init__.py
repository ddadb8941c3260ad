"""Metal sources of the kernels of the array library."""

import functools

from metalloid.kernels.sources import metal_source as _metal_source

#: Returns the concatenated text of files in this folder, given without ``.metal``.
metal_source = functools.partial(_metal_source, __name__)
