"""Expected results of MLX's unary functions of complex numbers.

Its formulas are those of textbooks, in float: they cancel near branch points and axes, so that
arguments are taken away from them and errors are relative to one at least.
"""

from __future__ import annotations

import numpy as np

from mlx_tree.element_types import special_values

_EXACT = {
    "Conjugate": np.conj, "Negative": np.negative, "Real": np.real, "Imag": np.imag,
    "Round": lambda z: np.rint(z.view(np.float32)).view(z.dtype),
}  # fmt: skip
_ORACLES = {
    "Abs": np.abs, "ArcCos": np.arccos, "ArcSin": np.arcsin, "ArcTan": np.arctan, "Cos": np.cos,
    "Cosh": np.cosh, "Exp": np.exp, "Log": np.log, "Log1p": np.log1p, "Log2": np.log2,
    "Log10": np.log10, "Sign": lambda z: z / np.abs(z), "Sin": np.sin, "Sinh": np.sinh,
    "Square": np.square, "Sqrt": np.sqrt, "Rsqrt": lambda z: 1 / np.sqrt(z), "Tan": np.tan,
    "Tanh": np.tanh,
}  # fmt: skip

#: At most so many rounded operations, none of which amplifies what came before.
_OPERATIONS = 16


def ring(size, rng):
    """Numbers of middling size in all quadrants."""
    parts = rng.uniform(0.3, 0.7, (2, size)) * rng.choice([-1, 1], (2, size))
    return (parts[0] + 1j * parts[1]).astype(np.complex64)


def arguments(op, rng):
    z = ring(258, rng)
    return np.append(special_values(np.complex64), z) if op in _EXACT else z


def compare(op, z, out):
    """Assert that `out` is the function of the complex numbers `z`."""
    if op in _EXACT:
        exact = _EXACT[op](np.ascontiguousarray(z))
        np.testing.assert_array_equal(out.real, exact.real)
        np.testing.assert_array_equal(out.imag, exact.imag)
    else:
        exact = _ORACLES[op](z.astype(np.complex128))
        error = np.abs(out - exact)
        assert np.max(error / np.maximum(np.abs(exact), 1)) <= _OPERATIONS * 2.0**-24
