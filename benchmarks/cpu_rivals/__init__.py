"""Rivals of metalloid's CPU kernels: C, and other Python packages."""
