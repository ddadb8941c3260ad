"""Kernels as small structured programs."""
