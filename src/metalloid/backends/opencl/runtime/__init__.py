"""The device: memory, launches and events over pyopencl.

`device` opens a device and is what `runtime.registry` imports; `offline` only compiles. `platforms`
lists the devices, and why others are not used.
"""
