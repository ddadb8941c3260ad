"""NVIDIA's libraries: cuBLAS, cuSOLVER and cuFFT through the bindings of nvmath-python.

The device creates `cuda_libraries.CudaLibraries`, which imports a library's module on first use.
"""
