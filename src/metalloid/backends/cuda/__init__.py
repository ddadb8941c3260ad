"""The device of NVIDIA GPUs: MSL compiled to PTX, launched by the CUDA driver."""
