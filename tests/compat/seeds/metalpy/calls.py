gpu.add(a, b)
gpu.matmul(A, B, M, N, K)
gpu.argmax(array)
gpu.gelu(activations)
