"""Bundles: compiled kernels in one file, which runs on machines without a compiler.

`container` is the file format, `save` makes a bundle and `load` runs one.
"""
