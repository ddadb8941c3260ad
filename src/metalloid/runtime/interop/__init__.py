"""Memory shared with other libraries: DLPack, CUDA's array interface, and the buffer protocol.

`strided` describes an array in memory; `exchange` is the part of a device that imports and exports;
`dlpack` reads and makes capsules; `export` gives memory of a device to others. Called by `memory`,
by `arguments`, and by the interoperability of arrays.
"""
