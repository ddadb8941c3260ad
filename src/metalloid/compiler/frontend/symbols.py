"""Names that compiled code defines, and that devices look up."""

from __future__ import annotations

#: The function that a device calls.
ENTRY_SYMBOL = "mtl_kernel"
#: How often the blocks of a kernel have run, in a build that counts.
COUNTERS = "mtl_counters"
