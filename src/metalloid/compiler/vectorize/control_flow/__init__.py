"""Control flow of a simdgroup: divergent branches become masks, phis become variables.

`vectorize.emit` calls `linearize`, which calls `vectorize.instructions` for each instruction.
"""
