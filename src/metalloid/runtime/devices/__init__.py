"""Devices: the interface `Device`, the registry that opens them by name, and their libraries.

`registry` imports a back end when a device of its kind is opened. `traits` describes a device to
the code generators; `libraries` are vendor libraries such as cuBLAS; `offline` devices compile
only. Called by everything that allocates or launches.
"""
