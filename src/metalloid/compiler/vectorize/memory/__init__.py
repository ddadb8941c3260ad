"""Loads and stores of a simdgroup, by how the addresses of its lanes relate.

`accesses` chooses: one wide access, an interleave group, a gather through registers, a lane at a
time. `vectorize.instructions` calls it.
"""
