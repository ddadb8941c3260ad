"""The device contract, and what all devices share: memory, textures, arguments and launches.

From the bottom: `interop` describes memory of other libraries, `launch` says what a launch is,
`devices` opens devices, `memory` and `textures` hold data on them, `arguments` binds values to the
parameters of kernels, and `graph` records launches. Devices are implemented in `backends`.
"""
