"""From MSL to machine code: `frontend`, `ir`, `analysis`, `transforms`, `vectorize`, `toolchain`.

The back ends put these together: `metalloid.backends.cpu` compiles with `vectorize`, and
`metalloid.backends.cuda` lets LLVM write PTX.
"""
