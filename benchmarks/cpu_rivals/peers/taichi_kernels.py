"""The kernels in Taichi's language, which Quadrants speaks as well."""

import numpy as np

# Annotations are evaluated: Taichi reads their values.


def launchers(ti):
    """The function `launcher` of a peer; `ti` is the package."""
    ti.init(arch=ti.cpu, fast_math=True, offline_cache=False, log_level=ti.ERROR)
    array = ti.types.ndarray

    @ti.kernel
    def julia(iterations: array(), width: int, height: int, cx: float, cy: float):
        for j, i in ti.ndrange(height, width):
            x = (i - 0.5 * width) * (3.0 / width)
            y = (j - 0.5 * height) * (3.0 / width)
            n = 0
            while n < 300:
                x2 = x * x
                y2 = y * y
                if x2 + y2 > 4.0:
                    break
                y = 2.0 * x * y + cy
                x = x2 - y2 + cx
                n += 1
            iterations[j, i] = n

    @ti.kernel
    def mandelbrot(iterations: array(), width: int, height: int):
        for j, i in ti.ndrange(height, width):
            cx = i * (3.0 / width) - 2.0
            cy = j * (2.0 / height) - 1.0
            x = 0.0
            y = 0.0
            n = 0
            while n < 256 and x * x + y * y <= 4.0:
                t = x * x - y * y + cx
                y = 2.0 * x * y + cy
                x = t
                n += 1
            iterations[j, i] = n

    @ti.kernel
    def nbody(acceleration: array(), bodies: array(), n: int):
        for i in range(n):
            here = ti.Vector([bodies[i, 0], bodies[i, 1], bodies[i, 2]])
            total = ti.Vector([0.0, 0.0, 0.0])
            for j in range(n):
                d = ti.Vector([bodies[j, 0], bodies[j, 1], bodies[j, 2]]) - here
                inverse = 1.0 / ti.sqrt(d.dot(d) + 1e-3)
                total += d * (bodies[j, 3] * inverse * inverse * inverse)
            for k in ti.static(range(3)):
                acceleration[i, k] = total[k]
            acceleration[i, 3] = 0.0

    @ti.kernel
    def matmul(c: array(), a: array(), b: array(), n: int):
        for i, j in ti.ndrange(n, n):
            total = 0.0
            for k in range(n):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    @ti.kernel
    def stencil(y: array(), x: array(), n: int):
        for j, i in ti.ndrange(n, n):
            if i > 0 and j > 0 and i < n - 1 and j < n - 1:
                around = x[j, i - 1] + x[j, i + 1] + x[j - 1, i] + x[j + 1, i]
                y[j, i] = 0.2 * (x[j, i] + around)
            else:
                y[j, i] = x[j, i]

    @ti.kernel
    def histogram(counts: array(), x: array(), share: int):
        for i in range(x.shape[0]):
            ti.atomic_add(counts[ti.cast(x[i], ti.i32)], ti.u32(1))

    @ti.kernel
    def prefix_sum(y: array(), x: array(), n: int):
        for row in range(x.shape[0]):
            total = 0.0
            for i in range(n):
                total += x[row, i]
                y[row, i] = total

    @ti.kernel
    def softmax(y: array(), x: array(), n: int):
        for row in range(x.shape[0]):
            largest = x[row, 0]
            for i in range(n):
                largest = ti.max(largest, x[row, i])
            total = 0.0
            for i in range(n):
                total += ti.exp(x[row, i] - largest)
            for i in range(n):
                y[row, i] = ti.exp(x[row, i] - largest) / total

    kernels = locals()

    def launcher(case):
        kernel, given = kernels[case.name], []
        for argument in case.arguments:
            given += argument if isinstance(argument, tuple) else [argument]

        def launch():
            kernel(*given)
            ti.sync()

        return launch, lambda: np.asarray(given[0])

    return launcher
