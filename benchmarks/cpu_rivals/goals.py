"""What metalloid means to reach, beside which the tables show what it does."""

from __future__ import annotations

#: Times as fast as the scalar loop that clang has vectorised where it can, on one core.
OVER_LOOP = {
    "julia": 6.5,
    "matmul": 20.0,
    "nbody": 8.0,
    "primes": 15.0,
}
#: Times as fast as the scalar loop as it is written: these two loops clang vectorises, and then all
#: forms run at the speed of the memory.
OVER_SCALAR = {"stencil": 5.0, "normalise": 3.5}
#: Times as fast as code by hand, at least: it may be 1.1 times faster; with barriers, 1 / 0.8.
OVER_HAND = dict.fromkeys(("tiled_matmul",), 0.8)
OVER_HAND_ELSE = 1 / 1.1
#: Times as fast as the reference engine.
OVER_REFERENCE = {"tree_reduction": 100.0}
#: Part of NumPy's speed, at least, for MLX's kernels; BLAS is written in assembly.
OVER_NUMPY = {"steel GEMM, float32": 0.35}
#: Two cores against one, where arithmetic is the limit.
SCALING = 1.9
COMPUTE_BOUND = ("julia", "mandelbrot", "collatz", "primes", "matmul", "tiled_matmul", "nbody")
#: Times of copying the arrays that functions of one number may take; or else so much of what a core
#: can compute at most.
OVER_COPY = 1.3
OF_CEILING = 0.7
FUNCTIONS = ("exp_of", "log_of", "sin_of", "pow_of")


def verdict(ratio: float, goal: float | None) -> str:
    """A ratio with its goal, and whether it is met."""
    if goal is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ({'met' if ratio >= goal else 'MISSED'}: {goal:.2g})"
