"""Checks of derivatives and batching, for functions of float64 and complex128 arrays."""

import numpy as np

import metalloid as mtl

_rng = np.random.default_rng(7)


def random(*shape, is_complex=False):
    """Normally distributed numbers."""
    x = _rng.standard_normal(shape)
    return x + 1j * _rng.standard_normal(shape) if is_complex else x


def like(x):
    """Random numbers of the shape and type of an array."""
    x = np.asarray(x)
    return random(*x.shape, is_complex=x.dtype.kind == "c").astype(x.dtype)


def results_of(function):
    """The function, with its float results as a list."""

    def listed(*args):
        value = function(*args)
        results = value if isinstance(value, list | tuple) else [value]
        return [r for r in results if np.dtype(r.dtype).kind in "fc"]

    return listed


def inner(xs, ys):
    """The real part of the sum of products with the conjugate."""
    pairs = zip(xs, ys, strict=True)
    return sum(np.vdot(np.asarray(x), np.asarray(y)).real for x, y in pairs)


def check_derivatives(function, *points, directions=None, order=2, rtol=1e-6, step=1e-6):
    """Compare a JVP with central differences, and a VJP with the JVP.

    With `order` 2 the same is done for the gradient of a weighted sum of squares of the results.
    """
    listed = results_of(function)
    directions = directions or [like(p) for p in points]
    args, along = (list(map(mtl.asarray, xs)) for xs in (points, directions))
    values, tangents = mtl.jvp(listed, args, along)
    ends = [
        listed(*(mtl.asarray(p + sign * step * d) for p, d in zip(points, directions, strict=True)))
        for sign in (1, -1)
    ]
    for tangent, value, high, low in zip(tangents, values, *ends, strict=True):
        assert tangent.dtype == value.dtype
        numeric = (np.asarray(high) - np.asarray(low)) / (2 * step)
        scale = max(np.abs(numeric).max(), 1e-3) if numeric.size else 1
        np.testing.assert_allclose(np.asarray(tangent), numeric, rtol=0, atol=rtol * scale)
    weights = [like(value) for value in values]
    _, products = mtl.vjp(listed, args, list(map(mtl.asarray, weights)))
    expected = inner(weights, tangents)
    np.testing.assert_allclose(inner(products, along), expected, rtol=1e-8, atol=1e-10)
    if order == 2:
        halves = [mtl.asarray(abs(w)) for w in weights]

        def loss(*xs):
            return sum(
                (w * mtl.abs(y) ** 2).sum() for w, y in zip(halves, listed(*xs), strict=True)
            )

        gradient = mtl.grad(loss, argnums=tuple(range(len(points))))
        check_derivatives(
            gradient, *points, directions=directions, order=1, rtol=rtol * 10, step=step
        )


def check_vmap(function, *points, rtol=1e-10):
    """Compare `vmap` with a stack of calls: all operands batched, and only the first or last."""
    count = 3
    for is_batched in {(True,) * len(points), *_one_batched(len(points))}:
        stacks = [
            np.stack([p + 0.1 * k * like(p) for k in range(count)]) if own else p
            for p, own in zip(points, is_batched, strict=True)
        ]
        arrays = list(map(mtl.asarray, stacks))
        listed = results_of(function)
        axes = [0 if own else None for own in is_batched]
        stacked = mtl.vmap(listed, in_axes=axes)(*arrays)
        calls = [
            listed(*(a[k] if own else a for a, own in zip(arrays, is_batched, strict=True)))
            for k in range(count)
        ]
        for result, expected in zip(stacked, zip(*calls, strict=True), strict=True):
            expected = np.stack([np.asarray(e) for e in expected])
            np.testing.assert_allclose(np.asarray(result), expected, rtol=rtol, atol=rtol)


def _one_batched(count):
    return {tuple(k == which for k in range(count)) for which in (0, count - 1)}
