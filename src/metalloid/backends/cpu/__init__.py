"""The CPU as a Metal device.

`compile` makes machine code of kernels, `runtime` loads and launches it, and `native` holds the C
sources: thread pool, fibres, barriers, and in `native/include` the headers that kernels include.
`host` describes this machine.
"""
