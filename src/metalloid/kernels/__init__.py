"""Libraries and kernels: what users call."""
