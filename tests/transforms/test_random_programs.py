"""Random programs of 5 to 40 operations: compiled equals eager bit for bit; gradients equal JAX's,
or central differences where JAX is not installed; batched equals a stack of calls.
"""

import importlib.util
import random

import numpy as np
import pytest

import metalloid as mtl

UNARY = ("sin", "cos", "tanh", "exp", "square", "abs", "negative")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
#: By default a program of 9 operations, of which eight are different.
SEEDS = [pytest.param(seed, marks=() if seed == 49 else pytest.mark.slow) for seed in range(60)]


def program(seed):
    """A function of a namespace and two 3 x 4 matrices to a scalar, made of random operations."""
    rng = random.Random(seed)
    steps = []
    for _ in range(rng.randint(5, 40)):
        kind = rng.choice(("unary", "binary", "binary", "scale", "flip", "sum", "roll", "product",
                           "where", "sort", "scan", "take"))  # fmt: skip
        name = rng.choice(UNARY if kind == "unary" else BINARY)
        steps.append((kind, name, rng.random(), rng.random(), rng.uniform(-1, 1)))

    def run(xp, a, b):
        values = [a, b]
        for kind, name, first, second, number in steps:
            x, y = values[int(first * len(values))], values[int(second * len(values))]
            if kind == "unary":
                z = getattr(xp, name)(xp.tanh(x))
            elif kind == "binary":
                z = getattr(xp, name)(x, y)
            elif kind == "scale":
                z = x * number + 0.1
            elif kind == "flip":
                z = xp.flip(x, axis=int(first * 2) % 2)
            elif kind == "sum":
                z = x + xp.sum(y, axis=1, keepdims=True) * 0.1
            elif kind == "roll":
                z = xp.concat([x[1:], y[:1]], axis=0)
            elif kind == "product":
                z = xp.tanh(x @ y.T @ x) * 0.5
            elif kind == "where":
                z = xp.where(x > y, x, y * number)
            elif kind == "sort":
                z = xp.sort(x, axis=1) * 0.9
            elif kind == "scan":
                z = xp.cumulative_sum(x, axis=0) * 0.3
            else:
                z = x[xp.asarray([2, 0, 2])] * y
            values.append(xp.tanh(z) if len(values) % 5 == 0 else z)
        return sum(xp.sum(xp.sin(value)) for value in values[-3:])

    return run


def inputs(seed, dtype):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((3, 4)).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_equals_eager(seed, without_vendor_products):
    run, values = program(seed), [mtl.asarray(v) for v in inputs(seed, "float32")]
    gradient = mtl.value_and_grad(lambda a, b: run(mtl, a, b), argnums=(0, 1))
    value, slopes = gradient(*values)
    compiled_value, compiled_slopes = mtl.compile(gradient)(*values)
    np.testing.assert_array_equal(np.asarray(compiled_value), np.asarray(value))
    for a, b in zip(compiled_slopes, slopes, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients(seed):
    run, values = program(seed), inputs(seed, "float64")
    own = mtl.grad(lambda a, b: run(mtl, a, b), argnums=(0, 1))(*map(mtl.asarray, values))
    mtl.eval(own)
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        theirs = jax.grad(lambda a, b: run(jax.numpy, a, b), argnums=(0, 1))(*values)
        for a, b in zip(own, theirs, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-8, atol=1e-9)
        return
    along = inputs(seed + 1000, "float64")
    ends = [
        float(
            run(mtl, *(mtl.asarray(v + s * 1e-6 * d) for v, d in zip(values, along, strict=True)))
        )
        for s in (1, -1)
    ]
    slope = sum(float((np.asarray(g) * d).sum()) for g, d in zip(own, along, strict=True))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_batched_equals_a_stack(seed):
    run = program(seed)
    stacks = [mtl.asarray(np.stack([v, v + 0.5, -v])) for v in inputs(seed, "float64")]
    batched = mtl.vmap(lambda a, b: run(mtl, a, b))(*stacks)
    alone = [float(run(mtl, stacks[0][k], stacks[1][k])) for k in range(3)]
    np.testing.assert_allclose(np.asarray(batched), alone, rtol=1e-9, atol=1e-12)
