"""Launches: compiled programs, bound arguments, events, failures, and messages of kernels.

`launches` has the interface of a device for launches, `Launcher`; `devices` and `graph` build on
it. Nothing here imports a device or a buffer: of buffers, `LaunchBuffer` says what launches use.
"""
