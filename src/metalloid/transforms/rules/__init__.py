"""Rules of the array library's primitives; `registry` says what a rule is.

Importing this package registers them. Packages above register those of their own primitives.
"""

from metalloid.transforms.rules import (
    control,
    convolution,
    indexing,
    kernels,
    products,
    searching,
    sorting,
)

__all__ = ["control", "convolution", "indexing", "kernels", "products", "searching", "sorting"]
