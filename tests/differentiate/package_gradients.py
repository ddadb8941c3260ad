"""Gradients of kernels of packages, and of the same formulas as functions of arrays."""

import json

import metalloid.compat.mlx as compat

compat.install(has_metal=True)

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402


class Cases(dict):
    """Functions by name, each of which returns the largest error of some kernels."""

    def __call__(self, function):
        self[function.__name__] = function
        return function

    def print(self):
        """Print the errors as JSON; null where another release of a package has the kernel."""
        results = {}
        for name, function in self.items():
            mx.random.seed(7)
            try:
                results[name] = function()
            except (ImportError, AttributeError):
                results[name] = None
        print(json.dumps(results, indent=1))


def normal(*shape, scale=1.0):
    return mx.random.normal(shape) * scale


def rms(x, eps=1e-5):
    return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + eps)


def compare(kernel, formula, *inputs):
    """The largest error of the gradients of a sum of the results, with random weights."""
    results = kernel(*inputs)
    results = results if isinstance(results, (list, tuple)) else [results]
    weights = [normal(*each.shape) for each in results]

    def loss(function):
        def total(*given):
            values = function(*given)
            values = values if isinstance(values, (list, tuple)) else [values]
            return sum((v * w).sum() for v, w in zip(values, weights, strict=True))

        return total

    numbers = list(range(len(inputs)))
    pairs = zip(
        *(mx.grad(loss(f), argnums=numbers)(*inputs) for f in (kernel, formula)), strict=True
    )
    return max(
        float(np.abs(np.array(a) - np.array(b)).max() / np.abs(np.array(b)).max()) for a, b in pairs
    )


def masked(function, mask, *given):
    """The results of a recurrence; what it returns of steps that the mask leaves out differs."""
    y, state = function(*given, mask)
    return [y if mask is None else mx.where(mask[..., None, None], y, 0), state]
