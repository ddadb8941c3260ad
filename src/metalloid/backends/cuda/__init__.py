"""NVIDIA GPUs: MSL compiled to PTX, and launched by the CUDA driver.

`compile` turns a kernel into PTX and needs no GPU, `libraries` binds cuBLAS, cuSOLVER and cuFFT,
and `runtime` is the device, which calls both. `include` holds the headers that wrap a kernel on the
GPU, `native` the C sources that launch kernels without the interpreter.
"""
