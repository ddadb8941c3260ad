from metalloid.compat.metalpy import MetalPy

gpu = MetalPy()

# Basic operations
a = gpu.array([1.0, 2.0, 3.0, 4.0])
b = gpu.array([5.0, 6.0, 7.0, 8.0])
c = gpu.add(a, b)
print(c.to_list())  # [6.0, 8.0, 10.0, 12.0]

# Activations
result = gpu.relu(gpu.array([-2.0, -1.0, 0.0, 1.0, 2.0]))

# Reductions
maximum = gpu.max(a)
total = gpu.sum(a)

# Linear algebra (2000×2000 matrix multiply)
A = gpu.array([...])  # 4M elements
B = gpu.array([...])
C = gpu.matmul(A, B, M=2000, N=2000, K=2000)
