"""Launches on Apple GPUs: memory, arguments, command buffers, vendor libraries.

``device.py`` is the entry point: `resolve.command_of` resolves the arguments of a launch, and
`batch.Batch` encodes and commits launches. Other modules see the device as `context.MetalContext`.
"""
