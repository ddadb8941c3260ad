"""Kernels of all kinds and the limits of the machine: what benchmarks have in common."""
