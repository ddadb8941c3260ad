"""The programs of ``workloads.py``, each in functions that the array API and NumPy share."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Program = Callable[..., Any]
#: By name: the program, of a namespace and arrays; and its inputs, of a generator and a size.
PROGRAMS: dict[
    str, tuple[Program, Callable[[np.random.Generator, int], Sequence[np.ndarray]], tuple[int, ...]]
] = {}


def program(inputs: Callable[[np.random.Generator, int], Sequence[np.ndarray]],
            *sizes: int) -> Callable[[Program], Program]:  # fmt: skip
    """Register a program under its name, with inputs for some sizes."""

    def register(function: Program) -> Program:
        PROGRAMS[function.__name__.replace("_", " ")] = function, inputs, sizes
        return function

    return register


def floats(*shape: Any) -> Callable[[np.random.Generator, int], Sequence[np.ndarray]]:
    """One array of float32 between 0.5 and 1.5; "n" in the shape is the size."""
    return arrays(shape)


def arrays(*shapes: Sequence[Any]) -> Callable[[np.random.Generator, int], Sequence[np.ndarray]]:
    """As `floats`, for several arrays."""

    def make(rng: np.random.Generator, n: int) -> Sequence[np.ndarray]:
        return [
            rng.random([n if k == "n" else k for k in shape], np.float32) + np.float32(0.5)
            for shape in shapes
        ]

    return make


# -- statistics


@program(floats("n"), 1000, 10**6, 10**7)
def mean_and_variance(xp, x):
    return xp.mean(x), xp.var(x)


@program(floats("n", 16), 100, 10**5, 10**6)
def standardised_columns(xp, x):
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


@program(floats("n", 32), 1000, 10**5)
def covariance(xp, x):
    d = x - xp.mean(x, axis=0)
    return d.T @ d / x.shape[0]


@program(arrays(["n"], ["n"]), 1000, 10**6)
def correlation(xp, x, y):
    a, b = x - xp.mean(x), y - xp.mean(y)
    return xp.sum(a * b) / xp.sqrt(xp.sum(a * a) * xp.sum(b * b))


@program(floats("n"), 1000, 10**6)
def skewness_and_kurtosis(xp, x):
    d = x - xp.mean(x)
    s = xp.mean(d * d)
    return xp.mean(d**3) / s**1.5, xp.mean(d**4) / (s * s)


@program(floats("n"), 1000, 10**6)
def log_likelihood_of_a_normal(xp, x):
    return -0.5 * xp.sum(((x - 1.0) / 0.3) ** 2) - x.shape[0] * math.log(
        0.3 * math.sqrt(2 * math.pi)
    )


@program(floats("n", 10), 100, 10**5)
def softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


@program(floats("n"), 1000, 10**6)
def sorted_quartiles(xp, x):
    s = xp.sort(x)
    n = x.shape[0]
    return s[n // 4], s[n // 2], s[3 * n // 4]


# -- finance


@program(arrays(["n"], ["n"], ["n"]), 1000, 10**6, 10**7)
def black_scholes(xp, s, k, t):
    d1 = (xp.log(s / k) + 0.07 * t) / (0.2 * xp.sqrt(t))
    d2 = d1 - 0.2 * xp.sqrt(t)
    cdf = lambda x: 1 / (1 + xp.exp(-1.5976 * x - 0.070566 * x * x * x))  # noqa: E731
    return s * cdf(d1) - k * xp.exp(-0.05 * t) * cdf(d2)


@program(floats("n"), 1000, 10**6)
def returns_and_volatility(xp, p):
    r = xp.log(p[1:] / p[:-1])
    return xp.std(r) * math.sqrt(252), xp.mean(r)


@program(floats("n"), 1000, 10**6)
def draw_down(xp, r):
    wealth = xp.exp(xp.cumulative_sum((r - 1) * 0.01))
    return xp.min(wealth), wealth[-1]


@program(floats(64, "n"), 1000, 10**5)
def paths_of_asset_prices(xp, z):
    return xp.mean(xp.maximum(xp.exp(xp.cumulative_sum(z * 0.02 - 0.02, axis=0))[-1] - 1, 0))


@program(floats("n"), 1000, 10**6)
def present_value(xp, cash):
    k = xp.arange(cash.shape[0], dtype=xp.float32)
    return xp.sum(cash * xp.exp(-0.00001 * k))


# -- images


@program(floats("n", "n", 3), 64, 1024)
def grey_of_rgb(xp, image):
    return 0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]


@program(lambda rng, n: [rng.integers(0, 255, (n, n, 3)).astype(np.uint8)], 64, 1024)
def grey_of_bytes(xp, image):
    x = xp.astype(image, xp.float32)
    return 0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]


@program(floats("n", "n"), 64, 1024)
def gamma_and_contrast(xp, image):
    return xp.clip((image**2.2 - 0.5) * 1.3 + 0.5, 0, 1)


@program(floats("n", "n"), 64, 1024)
def blur_by_slices(xp, x):
    return (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + 4 * x[1:-1, 1:-1]) / 8


@program(floats("n", "n"), 64, 1024)
def edges(xp, x):
    gx = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    gy = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    return xp.sqrt(gx * gx + gy * gy)


@program(floats("n", "n"), 64, 1024)
def downscaled(xp, x):
    n = x.shape[0] // 4
    return xp.mean(xp.reshape(x, (n, 4, n, 4)), axis=(1, 3))


@program(floats("n", "n"), 64, 1024)
def rotated_and_flipped(xp, x):
    return xp.flip(x.T, axis=1) + xp.flip(x, axis=0)


# -- physics


@program(floats("n", "n"), 64, 512)
def heat_equation(xp, u):
    for _ in range(20):
        inner = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
        middle = xp.concat([u[1:-1, :1], inner + 0.2 * lap, u[1:-1, -1:]], axis=1)
        u = xp.concat([u[:1], middle, u[-1:]], axis=0)
    return u


@program(arrays(["n", 3]), 64, 512)
def gravity(xp, p):
    d = p[None, :, :] - p[:, None, :]
    r2 = xp.sum(d * d, axis=2) + 0.01
    return xp.sum(d / (r2 * xp.sqrt(r2))[:, :, None], axis=1)


@program(arrays(["n"], ["n"]), 1000, 10**6)
def oscillators(xp, x, v):
    for _ in range(20):
        v = v - 0.01 * x
        x = x + 0.01 * v
    return x, v


@program(floats("n"), 1000, 10**6)
def logistic_map(xp, x):
    x = x / 2
    for _ in range(20):
        x = 3.4 * x * (1 - x)  # not chaotic, so that results can be compared
    return x


@program(floats("n"), 1000, 10**6)
def energy_of_spins(xp, x):
    s = xp.where(x > 1, xp.ones_like(x), -xp.ones_like(x))
    return -xp.sum(s[1:] * s[:-1]) - 0.1 * xp.sum(s)


# -- geometry


@program(arrays(["n", 2], ["n", 2]), 64, 1024)
def pairwise_distances(xp, a, b):
    d = a[:, None, :] - b[None, :, :]
    return xp.sqrt(xp.sum(d * d, axis=2))


@program(arrays(["n"], ["n"], ["n"], ["n"]), 1000, 10**6)
def great_circle(xp, a, b, c, d):
    h = xp.sin((c - a) / 2) ** 2 + xp.cos(a) * xp.cos(c) * xp.sin((d - b) / 2) ** 2
    return 12742 * xp.asin(xp.sqrt(xp.clip(h, 0, 1)))


@program(arrays(["n", 3], [3, 3]), 1000, 10**6)
def rotated_points(xp, p, m):
    return p @ m + 1


@program(floats("n", 2), 1000, 10**6)
def area_of_a_polygon(xp, p):
    x, y = p[:, 0], p[:, 1]
    return 0.5 * xp.abs(xp.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))


@program(arrays(["n", 3], ["n", 3]), 1000, 10**6)
def normals(xp, a, b):
    x = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    y = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    z = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return xp.stack([x, y, z], axis=1) / xp.sqrt(x * x + y * y + z * z)[:, None]


# -- signal


@program(floats("n"), 1024, 2**18)
def spectrum(xp, x):
    return xp.abs(xp.fft.rfft(x)) ** 2


@program(floats("n"), 1000, 10**6)
def moving_average(xp, x):
    s = xp.cumulative_sum(x - 1)
    return 1 + (s[16:] - s[:-16]) / 16


@program(floats("n"), 1000, 10**6)
def windowed_signal(xp, x):
    k = xp.arange(x.shape[0], dtype=xp.float32)
    return x * (0.5 - 0.5 * xp.cos(k * (2 * math.pi / x.shape[0])))


@program(floats("n"), 1000, 10**6)
def zero_crossings(xp, x):
    s = x > 1
    return xp.sum(xp.astype(s[1:] != s[:-1], xp.int32))


# -- machine learning


@program(arrays(["n", 64], [64, 64], [64]), 100, 10**4)
def dense_layer(xp, x, w, b):
    return xp.maximum(x @ w + b, 0)


@program(arrays(["n", 64], ["n"], [64]), 1000, 10**5)
def logistic_regression_step(xp, x, y, w):
    p = 1 / (1 + xp.exp(-(x @ w - 64)))
    return w - 0.1 * (x.T @ (p - y)) / x.shape[0]


@program(floats("n", 256), 100, 10**4)
def layer_norm(xp, x):
    d = x - xp.mean(x, axis=1, keepdims=True)
    return d / xp.sqrt(xp.mean(d * d, axis=1, keepdims=True) + 1e-5)


@program(arrays(["n", 64], ["n", 64], ["n", 64]), 64, 512)
def attention(xp, q, k, v):
    s = q @ k.T / 8
    e = xp.exp(s - xp.max(s, axis=1, keepdims=True))
    return (e / xp.sum(e, axis=1, keepdims=True)) @ v


@program(floats("n", 512), 100, 10**4)
def gelu(xp, x):
    return 0.5 * x * (1 + xp.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


@program(arrays(["n", 16], [8, 16]), 1000, 10**5)
def nearest_centre(xp, x, c):
    d = x[:, None, :] - c[None, :, :]
    return xp.argmin(xp.sum(d * d, axis=2), axis=1)


# -- graphs and text


@program(lambda rng, n: [rng.random((n, n), np.float32)], 64, 512)
def page_rank(xp, a):
    p = a / xp.sum(a, axis=0)
    r = xp.ones_like(p[0]) / p.shape[0]
    for _ in range(10):
        r = 0.85 * (p @ r) + 0.15 / p.shape[0]
    return r


@program(lambda rng, n: [rng.integers(0, 128, n).astype(np.uint8)], 1000, 10**6)
def upper_case(xp, text):
    is_lower = (text >= 97) & (text <= 122)
    return xp.where(is_lower, text - 32, text)


@program(lambda rng, n: [rng.integers(0, 128, n).astype(np.uint8)], 1000, 10**6)
def words(xp, text):
    is_space = text == 32
    return xp.sum(xp.astype(~is_space[1:] & is_space[:-1], xp.int32))
