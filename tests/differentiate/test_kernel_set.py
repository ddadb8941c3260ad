"""Adjoints of a set of kernels agree with complex steps of NumPy functions, on both CPU engines."""

from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

SOURCE = Path(__file__).with_name("kernel_set.metal").read_text()


def chain(x):
    positive, negative = np.tanh(x) * np.exp(-x * x), np.sin(x) + 0.5 * x
    a = np.where(x.real > 0, positive, negative)
    return a * a + np.sqrt(1 + a * a)


def scatter(x, indices):
    y = np.zeros(4, complex)
    np.add.at(y, indices // 2, x[indices] ** 2)
    return y


def stencil(x, c):
    left, right = np.r_[0, x[:-1]], np.r_[x[1:], 0]
    return x + c * (left - 2 * x + right) * x


def softmax(x, rows):
    x = x.reshape(rows, -1)
    e = np.exp(x - x.real.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(-1)


def stencil_iterations(x):
    rows = x.reshape(-1, 64)
    for _ in range(5):
        rows = rows + 0.1 * np.roll(rows, -1, 1) * np.roll(rows, 1, 1)
    return (rows * rows).reshape(-1)


def lanes(x):
    rows, index = x.reshape(-1, 32), np.arange(32)
    down = np.where(index + 3 < 32, (index + 3) % 32, index)
    return (np.cumsum(rows, 1) * rows[:, index ^ 5] + (rows * rows)[:, down]).reshape(-1)


def changed_in_a_loop(x):
    q, total = x, 0
    for _ in range(3):
        before = q
        q = q * q * 0.5 + before
        total = total + before * q
    return total + q


def while_small(x):
    y = np.array(x)
    for i, value in enumerate(x):
        n = 0
        while y[i].real < 4 and n < 9:
            y[i], n = y[i] * (1 + value), n + 1
    return y


def nested(x):
    total = np.zeros(len(x) - 3, complex)
    for j in range(3):
        s = x[:-3]
        for k in range(j + 1):
            s = np.sin(s) * x[k : len(x) - 3 + k] + s
        total = total + s * s
    return total


def grid_sample(x, grid, height, width):
    x, points = x.reshape(height, width), grid.reshape(-1, 2)
    y = np.zeros(len(points), complex)
    for i, (a, b) in enumerate(points):
        u, v = ((a + 1) * width - 1) / 2, ((b + 1) * height - 1) / 2
        for row in range(height):
            for column in range(width):
                by_u, by_v = u - column, v - row
                if abs(by_u.real) < 1 and abs(by_v.real) < 1:
                    by_u, by_v = (1 - each * np.sign(each.real) for each in (by_u, by_v))
                    y[i] += by_u * by_v * x[row, column]
    return y


def gated_delta(q, k, v, g, beta):
    steps = len(g)
    q, k, v = q.reshape(steps, 64), k.reshape(steps, 64), v.reshape(steps, 4)
    state, y = np.zeros((4, 64), complex), []
    for t in range(steps):
        state = state * g[t]
        delta = (v[t] - state @ k[t]) * beta[t]
        state = state + np.outer(delta, k[t])
        y.append(state @ q[t])
    return np.concatenate(y)


def floats(*shape, seed=1, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


TO = np.array([4, 0, 4, 2, 7, 7], np.int32)
WITH_A_ZERO = np.array([2, 3, 4, 0.5, 0, 3, 2, 0, 0], np.float32)
STEPS = 6
#: Inputs, further arguments after the output, size of the output, launch, and the function.
KERNELS = {
    "chain": ({"x": floats(40)}, {}, 40, {"threads": 40}, chain),
    "product_row": (
        {"a": floats(49), "b": floats(49, seed=2)}, {"n": 7}, 49, {"threads": (7, 7)},
        lambda a, b: (a.reshape(7, 7) @ b.reshape(7, 7)).reshape(-1),
    ),
    "running_product": ({"x": WITH_A_ZERO}, {"n": 3}, 3, {"threads": 3},
                        lambda x: x.reshape(3, 3).prod(1)),
    "scatter": ({"x": floats(8)}, {"indices": TO}, 4, {"threads": 6}, lambda x: scatter(x, TO)),
    "stencil": ({"x": floats(40), "c": floats(1)}, {"n": 40}, 40, {"threads": 40}, stencil),
    "softmax_tree": ({"x": floats(128)}, {}, 128, {"threads": 128, "group_size": 64},
                     lambda x: softmax(x, 2)),
    "softmax_lanes": ({"x": floats(150)}, {"n": 50}, 150, {"threads": 96, "group_size": 32},
                      lambda x: softmax(x, 3)),
    "product_tree": ({"x": floats(128, low=0.8, high=1.2)}, {}, 2,
                     {"threads": 128, "group_size": 64}, lambda x: x.reshape(2, 64).prod(1)),
    "stencil_iterations": ({"x": floats(128)}, {}, 128, {"threads": 128, "group_size": 64},
                       stencil_iterations),
    "lanes": ({"x": floats(64)}, {}, 64, {"threads": 64, "group_size": 32}, lanes),
    "changed_in_a_loop": ({"x": floats(9)}, {"n": 3}, 9, {"threads": 9}, changed_in_a_loop),
    "while_small": ({"x": floats(9, low=0.2)}, {}, 9, {"threads": 9}, while_small),
    "nested": ({"x": floats(12)}, {"n": 3}, 9, {"threads": 9}, nested),
    "stored_twice": ({"x": floats(20)}, {}, 20, {"threads": 20},
                     lambda x: np.where(x.real > np.float32(0.8), np.sin(x), x**3)),
    "grid_sample": (
        {"x": floats(77), "grid": floats(40, seed=2, low=-1.1, high=1.1)},
        {"height": 7, "width": 11}, 20, {"threads": 20},
        lambda x, grid: grid_sample(x, grid, 7, 11),
    ),
    "gated_delta": (
        {"q": floats(STEPS * 64), "k": floats(STEPS * 64, seed=2) / 8,
         "v": floats(STEPS * 4, seed=3), "g": floats(STEPS, seed=4, low=0.5),
         "beta": floats(STEPS, seed=5, low=0.2)},
        {"steps": STEPS}, STEPS * 4, {"threads": (32, 4), "group_size": (32, 2)}, gated_delta,
    ),
}  # fmt: skip
#: Those that a run compares by default.
FAST = ("softmax_lanes",)


def exact_gradients(function, inputs, cotangent):
    """Complex steps in double precision."""
    wide = {name: value.astype(complex) for name, value in inputs.items()}
    gradients = {}
    for name, value in wide.items():
        gradients[name] = np.zeros(value.shape)
        for index in range(len(value)):
            value[index] += 1e-30j
            gradients[name][index] = (function(*wide.values()).imag * cotangent).sum() * 1e30
            value[index] = value[index].real
    return gradients


def launch(kernel, inputs, more, size, cotangent, check=False, **sizes):
    """The adjoints of the inputs."""
    arguments = {**inputs, **more, "y": np.zeros(size, np.float32)}
    given = [arguments[parameter.name] for parameter in kernel.signature.arguments]
    shadows = {name: np.zeros_like(value) for name, value in inputs.items()}
    adjoint = kernel.vjp(wrt=list(inputs), outputs=["y"])
    with mtl.config.scope(check=check):
        adjoint(*given, cotangent, *shadows.values(), **sizes)
    return adjoint, shadows


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in KERNELS]
)
@pytest.mark.parametrize("engine", ["simd", pytest.param("reference", marks=pytest.mark.slow)])
def test_gradients(name, engine):
    inputs, more, size, sizes, function = KERNELS[name]
    cotangent = floats(size, seed=9)
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(SOURCE, device="cpu")[name]
        adjoint, computed = launch(kernel, inputs, more, size, cotangent, **sizes)
    expected = exact_gradients(function, inputs, cotangent.astype(np.float64))
    for key, value in expected.items():
        error = np.abs(computed[key] - value).max() / np.abs(value).max()
        assert error <= 2e-6, (key, error)
    mtl.library(adjoint.source, device="cpu", portable=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_sanitizer_finds_nothing(name):
    inputs, more, size, sizes, _ = KERNELS[name]
    kernel = mtl.library(SOURCE, device="cpu")[name]
    launch(kernel, inputs, more, size, floats(size, seed=9), check=True, **sizes)


def tangents(name):
    """Tangents of an output, and complex steps."""
    inputs, more, size, sizes, function = KERNELS[name]
    kernel = mtl.library(SOURCE, device="cpu")[name]
    arguments = {**inputs, **more, "y": np.zeros(size, np.float32)}
    given = [arguments[parameter.name] for parameter in kernel.signature.arguments]
    steps = [floats(len(value), seed=k + 20) for k, value in enumerate(inputs.values())]
    computed = np.zeros(size, np.float32)
    tangent = kernel.jvp(wrt=list(inputs), outputs=["y"])
    tangent(*given, *steps, computed, **sizes)
    values = zip(inputs.values(), steps, strict=True)
    moved = function(*(x.astype(complex) + 1e-30j * step for x, step in values))
    scale = np.abs(moved.real).max()
    assert np.abs(arguments["y"] - moved.real).max() <= 4e-6 * scale
    return tangent, computed, moved.imag * 1e30


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in KERNELS]
)
def test_tangents(name):
    tangent, computed, expected = tangents(name)
    error = np.abs(computed - expected).max() / np.abs(expected).max()
    assert error <= 2e-6, error
    mtl.library(tangent.source, device="cpu", portable=True)
