"""Other GPUs, and CPUs, through OpenCL: MSL compiled to SPIR-V.

`compile` turns a kernel into SPIR-V and needs no OpenCL; `runtime` is the device, over pyopencl.
`include` holds the header that wraps a kernel.
"""
