"""ggml's Metal kernels compared with NumPy: what each family expects and what is right."""
