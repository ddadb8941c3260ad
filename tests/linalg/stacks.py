"""Stacks of matrices, functions of one matrix over them, and how near results have to be."""

import numpy as np

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.plan import FusedKernel, make_plan

TYPES = ("float32", "float64", "complex64", "complex128")
#: One matrix, a stack, a stack of stacks, and empty ones.
SQUARE = ((1, 1), (4, 4), (3, 5, 5), (2, 1, 3, 3), (0, 0), (2, 0, 0), (0, 3, 3))
ANY = ((1, 1), (4, 3), (3, 4), (3, 5, 2), (2, 1, 2, 6), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3))


def random(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def definite(rng, shape, dtype):
    """Hermitian and well conditioned: eigenvalues from 1 to about 5."""
    x = random(rng, shape, dtype)
    n = max(shape[-1], 1)
    return (x @ adjoint(x) / n + np.eye(shape[-1])).astype(dtype)


def invertible(rng, shape, dtype):
    """With a strong diagonal, so that a condition number of 10 is not exceeded by much."""
    x = random(rng, shape, dtype)
    return (x + 3 * np.sqrt(max(shape[-1], 1)) * np.eye(shape[-1])).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def mapped(function, x, *more):
    """A function of one matrix on every matrix, in double precision; None if there is none."""
    x = wide(x)
    results = [function(x[index], *more) for index in np.ndindex(x.shape[:-2])]
    return np.reshape(results, (*x.shape[:-2], *np.shape(results[0]))) if results else None


def near(got, want, units=4):
    """Whether the difference is some rounding errors of the type, relative to the largest element.

    Of every matrix of a stack; what is compared are its last two axes.
    """
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    axes = tuple(range(max(got.ndim - 2, 0), got.ndim))
    error = np.abs(wide(got) - want).max(axis=axes, initial=0)
    size = np.abs(want).max(axis=axes, initial=0)
    bound = units * np.finfo(got.dtype).eps * size
    assert (error <= bound).all(), f"{error.max()} is beyond {bound.min()}"


def rounded_once(got, want):
    """Whether every element is the exact one rounded to the type, up to errors of double precision.

    Which are taken as 1000 units in the last place of the largest element.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    eps, fine = np.finfo(got.dtype).eps, np.finfo(np.float64).eps
    slack = 1000 * fine * np.abs(want).max(initial=0)
    assert (np.abs(wide(got) - want) <= 0.75 * eps * np.abs(want) + slack).all()


def steps_of(*arrays):
    """Kernels, and names of calls of the host, that computing arrays takes."""
    nodes = [x._node for x in arrays]
    graph = LinearizedGraph(nodes)
    return [
        "kernel" if isinstance(step, FusedKernel) else graph.nodes[step.index].data.name
        for step in make_plan(graph).steps
    ]


__all__ = ["ANY", "SQUARE", "TYPES", "adjoint", "definite", "invertible", "mapped", "mtl", "near",
           "random", "rounded_once", "steps_of", "wide"]  # fmt: skip
