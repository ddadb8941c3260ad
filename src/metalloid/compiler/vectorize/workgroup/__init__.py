"""Barriers: parallel regions, what lives across them, and the loops over simdgroups.

`vectorize.pipeline` calls it; `simdgroup_loops` is called by the CPU back end.
"""
