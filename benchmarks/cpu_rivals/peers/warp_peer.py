"""NVIDIA Warp on its CPU device (which has one thread)."""

# ruff: noqa: UP018, RUF046 -- int(0) is how Warp knows a variable from a constant
import numpy as np
import warp as wp

NAME = "warp"
wp.config.quiet = True
wp.init()
wp.set_device("cpu")


@wp.kernel
def julia(iterations: wp.array2d(dtype=int), width: int, height: int, c: wp.vec2):
    j, i = wp.tid()
    scale = 3.0 / float(width)
    x = (float(i) - 0.5 * float(width)) * scale
    y = (float(j) - 0.5 * float(height)) * scale
    n = int(0)
    while n < 300:
        x2 = x * x
        y2 = y * y
        if x2 + y2 > 4.0:
            break
        y = 2.0 * x * y + c[1]
        x = x2 - y2 + c[0]
        n += 1
    iterations[j, i] = n


@wp.kernel
def mandelbrot(iterations: wp.array2d(dtype=int), width: int, height: int):
    j, i = wp.tid()
    cx = float(i) * (3.0 / float(width)) - 2.0
    cy = float(j) * (2.0 / float(height)) - 1.0
    x = float(0.0)
    y = float(0.0)
    n = int(0)
    while n < 256 and x * x + y * y <= 4.0:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        n += 1
    iterations[j, i] = n


@wp.kernel
def nbody(acceleration: wp.array(dtype=wp.vec4), bodies: wp.array(dtype=wp.vec4), n: int):
    i = wp.tid()
    here = bodies[i]
    total = wp.vec3()
    for j in range(n):
        b = bodies[j]
        d = wp.vec3(b[0] - here[0], b[1] - here[1], b[2] - here[2])
        inverse = 1.0 / wp.sqrt(wp.dot(d, d) + 1.0e-3)
        total += d * (b[3] * inverse * inverse * inverse)
    acceleration[i] = wp.vec4(total[0], total[1], total[2], 0.0)


@wp.kernel
def matmul(
    c: wp.array2d(dtype=float), a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), n: int
):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(n):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@wp.kernel
def stencil(y: wp.array2d(dtype=float), x: wp.array2d(dtype=float), n: int):
    j, i = wp.tid()
    if i > 0 and j > 0 and i < n - 1 and j < n - 1:
        y[j, i] = 0.2 * (x[j, i] + x[j, i - 1] + x[j, i + 1] + x[j - 1, i] + x[j + 1, i])
    else:
        y[j, i] = x[j, i]


@wp.kernel
def histogram(counts: wp.array(dtype=wp.uint32), x: wp.array(dtype=wp.uint8)):
    wp.atomic_add(counts, int(x[wp.tid()]), wp.uint32(1))


@wp.kernel
def prefix_sum(y: wp.array2d(dtype=float), x: wp.array2d(dtype=float), n: int):
    row = wp.tid()
    total = float(0.0)
    for i in range(n):
        total += x[row, i]
        y[row, i] = total


@wp.kernel
def softmax(y: wp.array2d(dtype=float), x: wp.array2d(dtype=float), n: int):
    row = wp.tid()
    largest = x[row, 0]
    for i in range(n):
        largest = wp.max(largest, x[row, i])
    total = float(0.0)
    for i in range(n):
        total += wp.exp(x[row, i] - largest)
    for i in range(n):
        y[row, i] = wp.exp(x[row, i] - largest) / total


def _dtype(name, array):
    return wp.vec4 if name == "nbody" else wp.dtype_from_numpy(array.dtype)


def launcher(case):
    kernel = globals()[case.name]
    given = [
        wp.array(a, dtype=_dtype(case.name, a), copy=False) if isinstance(a, np.ndarray) else a
        for a in case.arguments
    ]
    threads = given[1].size if case.name == "histogram" else case.arguments[0].shape
    if case.name == "histogram":
        given = given[:2]
    elif case.name in ("nbody", "prefix_sum", "softmax"):
        threads = threads[:1]
    if case.name == "julia":
        given[-1] = wp.vec2(*given[-1])
    command = wp.launch(kernel, dim=threads, inputs=given, record_cmd=True)
    return command.launch, given[0].numpy
