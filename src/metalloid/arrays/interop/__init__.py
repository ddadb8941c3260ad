"""Exchange of memory with other libraries: DLPack, NumPy's protocols, the buffer protocol."""
