"""Launches of the kernels in ``metal/`` that are not generated: sorts, scans, windows."""
