"""Execution: evaluation of nodes, calls of host functions and user kernels, `explain`."""
