"""Counts of what kernels do: instrumentation of their blocks."""
