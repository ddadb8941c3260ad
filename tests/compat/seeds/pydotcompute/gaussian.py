import metalloid as mx
from metalloid.compat.pydotcompute.backends.metal import MetalBackend
import numpy as np

backend = MetalBackend()

# Define a custom kernel using MLX operations
def gaussian_kernel(x: mx.array) -> mx.array:
    return mx.exp(mx.negative(mx.square(x)))

# Compile the kernel
compiled = backend.compile_kernel(gaussian_kernel)

# Use with NumPy arrays (auto-converted)
input_data = np.linspace(-3, 3, 100).astype(np.float32)
output = compiled(input_data)
result = backend.copy_to_host(output)
