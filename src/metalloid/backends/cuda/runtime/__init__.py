"""The device: memory, launches and events over the CUDA driver.

`device` opens a GPU and is what `runtime.registry` imports; `offline` only compiles. `device` calls
the other modules, and none of them calls `device`.
"""
