"""Reductions: sum, product, least, greatest, all and any."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree import reduce_launches as launches
from mlx_tree.agreement import Family, assert_near, assert_same, roundoff, sum_error
from mlx_tree.element_types import is_float, numbers, types_at_end, wide

_NAME = re.compile(
    r"(init|all|row|col)_reduce(?:_(small|simple|looped|longcolumn|2pass))?(?:_large)?"
    r"(?:_(\d)(?:_32_32)?_reduce)?_(and|or|sum|prod|min|max)$"
)
TWO_PASSES = ("longcolumn", "2pass")
#: The types in which sums and products of short integers are computed.
_SUM_TYPES = {"uint8": "int32", "int8": "int32", "int16": "int32", "uint16": "uint32"}


def result_type(op, dtype):
    if op in ("and", "or"):
        return np.dtype(bool)
    if op in ("sum", "prod"):
        return np.dtype(_SUM_TYPES.get(dtype.name, dtype))
    return dtype


def initial_value(op, dtype):
    """The neutral element."""
    if op in ("sum", "prod", "and", "or"):
        return dtype.type(op in ("prod", "and"))
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if op == "min" else np.iinfo(dtype).min
    if dtype.kind == "b":
        return op == "min"
    infinity = np.inf if op == "min" else -np.inf
    return complex(infinity, infinity) if dtype.kind == "c" else infinity


def argument(op, dtype, shape, rng):
    """Numbers whose reduction says something: no overflow, no certain result."""
    size = int(np.prod(shape))
    if op in ("and", "or"):
        rare = rng.random(size) < 2 / shape[-1]
        x = np.where(rare == (op == "or"), numbers(dtype, size, rng), 0).astype(dtype)
        x = np.where(rare | (op == "or") | (x != 0), x, np.ones(1, dtype))
        if is_float(dtype) and op == "or":
            x = np.where(rare, x, -np.zeros(1, dtype))  # its bits are not zero
        x = x.astype(dtype)
    elif op == "prod" and (is_float(dtype) or dtype.kind == "c"):
        units = [1, -1, 1j, -1j] if dtype.kind == "c" else [1, -1, 2, 0.5]
        x = rng.choice(np.array(units), size, p=[0.47, 0.47, 0.03, 0.03])
        few = rng.random(size) < 3 / shape[-1] / max(1, size // 200)
        x = np.where(few, x * (1 + 0.5j if dtype.kind == "c" else 1.5), x).astype(dtype)
    elif is_float(dtype) or dtype.kind == "c":
        x = numbers(dtype, size, rng, -9, 9)
        if op in ("min", "max") and is_float(dtype):
            x[:: max(3, size // 3)] = np.nan
    else:
        x = numbers(dtype, size, rng)
    return x.reshape(shape)


def _least(x, axes, sign):
    """The least of complex numbers, by real parts first."""
    retained = [axis for axis in range(x.ndim) if axis not in axes]
    flat = x.transpose(*retained, *axes).reshape(*(x.shape[axis] for axis in retained), -1)
    order = np.lexsort((sign * flat.imag, sign * flat.real))
    return np.take_along_axis(flat, order, -1)[..., 0]


def _product_error(x, exact, axes):
    """As many rounded products as factors that are no powers of two."""
    factors = np.sum(np.abs(x.real) + np.abs(x.imag) == 1.5, axis=axes)
    each = roundoff(x.dtype) * (4 if x.dtype.kind == "c" else 1)
    return np.abs(exact) * (factors + 1) * each * 1.1


def compare(op, x, out, axes, additions):
    """Assert that `out` is `x` reduced along `axes`; a term is in `additions` sums at most."""
    if op in ("and", "or"):
        truths = wide(x) != 0
        expected = truths.all(axes) if op == "and" else truths.any(axes)
        np.testing.assert_array_equal(out, expected)
    elif op in ("min", "max"):
        if x.dtype.kind == "c":
            expected = _least(x, axes, 1 if op == "min" else -1)
        else:
            expected = (np.min if op == "min" else np.max)(wide(x), axis=axes).astype(x.dtype)
        assert_same(out, expected)
    elif x.dtype.kind in "biu":
        reduce = np.sum if op == "sum" else np.prod
        np.testing.assert_array_equal(out, reduce(x, axis=axes, dtype=out.dtype))
    else:
        exact = (np.sum if op == "sum" else np.prod)(wide(x), axis=axes)
        if op == "prod":
            _assert_parts(out, exact, *[_product_error(x, exact, axes)] * 2)
        else:
            parts = (x.real, x.imag) if x.dtype.kind == "c" else (x, x)
            _assert_parts(out, exact, *(
                sum_error(chunk, additions, chunk.dtype, axis=axes) for chunk in parts
            ))  # fmt: skip


def _assert_parts(out, exact, real_error, imag_error):
    if out.dtype.kind != "c":
        assert_near(out, exact, real_error)
        return
    assert_near(np.ascontiguousarray(out.real), exact.real, real_error)
    assert_near(np.ascontiguousarray(out.imag), exact.imag, imag_error)


def alternating(extents, last):
    """A shape of reduced and retained axes in turn, and a last one; the axes of either kind."""
    shape = [extent for pair in extents for extent in pair]
    return (*shape, last), list(range(1, len(shape), 2)), list(range(0, len(shape), 2))


#: (reduced, retained) extents by the number of reduced axes that a kernel is made for.
_FEW = {1: [(3, 5)], 2: [(2, 3), (3, 2)], 5: [(2, 2), (2, 3), (2, 2)]}
_MANY = {1: [(40, 3)], 2: [(5, 2), (8, 2)], 5: [(3, 2), (4, 2), (3, 2)]}


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    head, (dtype,) = types_at_end(name)
    match = _NAME.match(head)
    assert match, name
    kind, form, axes, op = match.groups()
    kernel = library.function(name)
    if kind == "init":
        check_initial(kernel, op, dtype)
    elif form in (None, "simple"):
        check_matrices(kernel, kind, op, dtype, rng)
    else:
        result = result_type(op, dtype).name.replace("bool", "bool_")
        kernels = [kernel]
        if form in TWO_PASSES:
            kernels.append(library.function(f"col_reduce_looped_1_32_32_reduce_{op}{result}"))
        check_axes(kernels, kind, form, int(axes), op, dtype, rng)


def check_initial(kernel: mtl.Kernel, op, dtype) -> None:
    """Compare what an empty reduction gives."""
    dtype = np.dtype(dtype)
    out = np.empty(100, dtype)
    kernel(out, threads=100, group_size=100)
    assert (out == np.asarray(initial_value(op, dtype)).astype(dtype)).all()


def check_axes(kernels, kind, form, axes, op, dtype, rng) -> None:
    """Compare reductions over so many axes, by the kernels of one pass or two."""
    dtype = np.dtype(dtype)
    launch = getattr(launches, f"{kind}_reduce_{form}")
    for shape, retained, reduced in _shapes(kind, form, axes):
        x = argument(op, dtype, shape, rng)
        out = np.empty([shape[axis] for axis in retained], result_type(op, dtype))
        additions = launch(*kernels, x, out, retained, reduced)
        compare(op, x, out, tuple(reduced), additions)


def check_matrices(kernel: mtl.Kernel, kind, op, dtype, rng) -> None:
    """Compare reductions of everything, or of the rows of a matrix."""
    dtype = np.dtype(dtype)
    result = result_type(op, dtype)
    for size in (1, 33, 127, 1100) if kind == "all" else (70, 600, 1100):
        shape = (1, size) if kind == "all" else (6, size)
        x = argument(op, dtype, shape, rng)
        out = np.empty(len(x), result)
        launch = launches.all_reduce if kind == "all" else launches.row_reduce_simple
        compare(op, x, out, (1,), launch(kernel, x, out))


def _shapes(kind, form, axes):
    """Shapes that MLX would give to a kernel, or smaller ones, with retained and reduced axes."""
    if kind == "row":
        for extents, last in (
            [(_FEW[axes], 7), (_MANY[axes], 9)] if form == "small"
            else [(_FEW[axes], 100), ([(2, 2)] * len(_FEW[axes]), 1100 if axes == 1 else 70)]
        ):  # fmt: skip
            shape, retained, reduced = alternating(extents, last)
            yield shape, retained, [*reduced, len(shape) - 1]
        return
    rows = 40 if form == "longcolumn" else 9
    outer = {1: (2, rows), 2: (3, 2, rows), 5: (2, 2, 3, 2, rows)}[axes]
    reduced = [axis for axis in range(len(outer)) if (len(outer) - axis) % 2]
    retained = [axis for axis in range(len(outer) + 1) if axis not in reduced]
    columns = {"small": (33, 133), "looped": (37,), "longcolumn": (7,), "2pass": (11,)}
    for last in columns[form]:
        yield (*outer, last), retained, reduced


FAMILIES = (Family("reduce", ("reduce.metal",), check),)
