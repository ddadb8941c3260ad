"""From a kernel to machine code for CPUs.

`engines` chooses between two engines: `vector`, which runs a simdgroup as vector code, and
`reference`, which runs one thread at a time. Both start from `kernel_ir`. A kernel has variants,
for shapes of launches and for formats of textures (`texture_specialization`). `bundle` ships the
variants that can run any launch. Called by `backends.cpu.runtime`.
"""
