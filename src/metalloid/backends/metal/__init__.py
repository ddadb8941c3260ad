"""Apple GPUs, by Metal's own compiler: ``pyobjc``, ``compile`` and ``runtime``, in this order."""
