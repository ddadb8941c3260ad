"""Memory safety: accesses of a kernel stay within the objects they were made for.

`objects` finds the object and the offset of an address, `check_accesses` inserts the checks, and
`ranges` describes the offsets as intervals, which a launch evaluates to leave checks out.
"""
