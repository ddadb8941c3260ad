"""Atomic operations of a simdgroup: lane by lane, packed, or deferred to the end of a call.

`vectorize.memory.accesses` calls `operations`.
"""
