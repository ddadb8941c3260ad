from metalloid.compat.pydotcompute.backends.metal import MetalBackend

backend = MetalBackend()
if backend.is_available:
    # GPU acceleration on Apple Silicon
    data = backend.copy_to_device(np.array([1, 2, 3], dtype=np.float32))
