"""Select, the one ternary operation; also where a scalar is chosen from."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family
from mlx_tree.element_types import numbers, special_values, types_at_end
from mlx_tree.elementwise import Form, form_of, run


def check_kernel(kernel: mtl.Kernel, form: Form, dtype, rng) -> None:
    """Compare a kernel whose form's letters are those of the two values."""
    # The name says which of the two values is a scalar; the condition is a vector.
    vectors = {"v": "vvv", "vs": "vvs", "sv": "vsv", "": ""}[form.vectors]
    x, y = (np.append(special_values(dtype), numbers(dtype, 300, rng)) for _ in range(2))
    condition = rng.integers(0, 2, x.size).astype(bool)
    pools = [condition, x, y[::-1].copy()]
    for (chosen, a, b), (out,) in run(
        kernel, form._replace(vectors=vectors), pools, [dtype], dtype
    ):
        np.testing.assert_array_equal(bits(out), bits(np.where(chosen, a, b)))


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    form, rest = form_of(name)
    _, (dtype,) = types_at_end(rest)
    check_kernel(library.function(name), form, dtype, rng)


def bits(x):
    """The bytes of an array: a copied NaN stays the same NaN, a zero keeps its sign."""
    return np.ascontiguousarray(x).view(np.uint8)


FAMILIES = (Family("ternary", ("ternary.metal",), check),)
