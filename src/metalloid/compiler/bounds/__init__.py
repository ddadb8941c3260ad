"""Memory safety: accesses of a kernel stay within the objects they were made for.

`pipeline` lists the passes. `objects` finds the object and the offset of an address, `sites` the
accesses that are checked together, `check_accesses` inserts the checks, and `ranges` describes the
offsets as intervals, which a launch evaluates to leave checks out.
"""
