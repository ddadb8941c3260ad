"""Builders of kernels from expressions: elementwise, reductions and scans.

`ElementwiseKernel`, `ReductionKernel` and `ScanKernel` are for users. `builder` is the base of all,
`axis_kernel` of the last two. They generate Metal and launch it as kernels of a library.
"""
