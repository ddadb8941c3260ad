"""Goals of metalloid, which the tables show next to its results."""

from __future__ import annotations


def as_told(case: str) -> str:
    """The row of a case in C that does what the kernel's text says, where C has a better method."""
    return f"{case}, its own steps"


#: Times as fast as the kernel as a scalar loop that clang may vectorise, on one core. Of some that
#: promise more than the kernels it makes vectors, as of the stencil without a guard: then all forms
#: run at the speed of the memory.
OVER_LOOP = {
    "julia": 6.5,
    "matmul": 20.0,
    "nbody": 8.0,
    "primes": 15.0,
    "guarded_stencil": 5.0,
    as_told("normalise"): 3.5,
}
#: Times as fast as code by hand, at least: it may be 1.1 times faster; with barriers, 1 / 0.8.
OVER_HAND = dict.fromkeys(("tiled_matmul",), 0.8)
OVER_HAND_ELSE = 1 / 1.1
#: Times as fast as the reference engine.
OVER_REFERENCE = {"tree_reduction": 100.0}
#: The same for kernels over textures.
OVER_REFERENCE_OF_IMAGES = {"resize": 6.0}
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


def over(rival: str, row: str) -> float | None:
    """Times as fast as a rival of `RIVALS` we want to be, if we do."""
    if rival == "by hand":
        return OVER_HAND.get(row, OVER_HAND_ELSE)
    return OVER_LOOP.get(row) if rival == "loop" else None


def verdict(ratio: float, goal: float | None) -> str:
    """A ratio with its goal, and whether it is met."""
    if goal is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ({'met' if ratio >= goal else 'MISSED'}: {goal:.2g})"
