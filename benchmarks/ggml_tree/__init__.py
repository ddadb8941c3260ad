"""ggml's Metal kernels compared with NumPy: what each family wants and what is right."""
