"""From MSL to machine code: `toolchain`, `frontend`, `ir`, `analysis`, `transforms` and stages.

The stages of kernels for CPUs are in `bounds`, `sanitizer` and `vectorize`; `cpu_pipeline` lists
them, and `single_passes` runs one pass at a time for developers. The back ends put these together:
`metalloid.backends.cpu` compiles with `vectorize`, and `metalloid.backends.cuda` lets LLVM write
PTX.
"""
