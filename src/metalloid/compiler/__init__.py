"""From MSL to machine code: `toolchain`, `frontend`, `ir`, `analysis`, `transforms` and stages.

The stages of kernels for CPUs are in `bounds`, `sanitizer` and `vectorize`. The back ends put these
together: `metalloid.backends.cpu` compiles with `vectorize`, and `metalloid.backends.cuda` lets
LLVM write PTX. Each has a file `compile/pipeline.py`, which lists its passes.
"""
