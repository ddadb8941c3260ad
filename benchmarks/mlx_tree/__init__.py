"""MLX's own kernels, family by family: how each is launched and what it must give."""
