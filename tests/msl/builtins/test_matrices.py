"""Matrices of 2 to 4 columns and rows: construction, operators, functions, access.

Sums, differences and products with a scalar are one rounding per element and so exact; products of
matrices have the classical bound of a sum of products in the type of the elements.
"""

from itertools import permutations, product

import numpy as np
import pytest
from judges import rounded, roundoff, smallest
from msl_types import DTYPES
from sheets import Row, Sheet

U = roundoff(np.dtype(np.float32))
SIZES = (2, 3, 4)


def d(x):
    return x.astype(np.float64)


def times(a, b):
    """Product of matrices; a vector on the right is a column, on the left a row."""
    a, b = d(a), d(b)
    if b.ndim == 2:
        return np.einsum("nrc,nc->nr", a, b)
    if a.ndim == 2:
        return np.einsum("nr,nrc->nc", a, b)
    return np.einsum("nrk,nkc->nrc", a, b)


def product_error(count):
    """`count` products and sums, each rounded to the element type; each may underflow."""

    def error(a, b):
        each = count * roundoff(a.dtype)
        return each / (1 - each) * times(np.abs(a), np.abs(b)) + count * smallest(a.dtype)

    return error


def renamed(function, *names):
    """`function` of the inputs called `names`."""
    wrapper = lambda *values: function(*values)  # noqa: E731
    wrapper.names = names
    return wrapper


def column(a, j):
    return a[:, :, j]


def replaced(a, w, s):
    """Column 1 becomes w; then its element 0 becomes s, of which matrices have at least two."""
    result = a.copy()
    result[:, :, 1] = w
    result[:, 0, 1] = s
    return result


def diagonal(rows, columns):
    return lambda s: np.where(np.eye(rows, columns, dtype=bool), d(s)[:, None, None], 0.0)


def determinant_error(a):
    """Every term of the expansion passes through at most six roundings, in float."""
    n, a_ = a.shape[1], np.abs(d(a))
    terms = sum(
        np.prod([a_[:, row, chosen] for row, chosen in enumerate(order)], axis=0)
        for order in permutations(range(n))
    )
    exact = np.abs(np.linalg.det(d(a)))
    return 8 * U * terms + exact * roundoff(a.dtype) + smallest(a.dtype)


def rows_of(type_, columns, rows):
    T, column_type = f"{type_}{columns}x{rows}", f"{type_}{rows}"
    by_columns = ", ".join(f"a[{j}]" for j in range(columns))
    by_elements = ", ".join(f"a[{j}][{i}]" for j in range(columns) for i in range(rows))
    other = "half" if type_ == "float" else "float"
    last = columns - 1
    table = [
        Row(T, "a + b", lambda a, b: d(a) + d(b)),
        Row(T, "a - b", lambda a, b: d(a) - d(b)),
        Row(T, "-a", lambda a: -d(a)),
        Row(T, "+a", lambda a: d(a)),
        Row(T, "a * s", lambda a, s: d(a) * d(s)[:, None, None]),
        Row(T, "s * a", lambda a, s: d(a) * d(s)[:, None, None]),
        Row(T, "a / s", lambda a, s: d(a) / d(s)[:, None, None]),
        Row(T, "y = a; y += b;", lambda a, b: d(a) + d(b)),
        Row(T, "y = a; y -= b;", lambda a, b: d(a) - d(b)),
        Row(T, "y = a; y *= s;", lambda a, s: d(a) * d(s)[:, None, None]),
        Row(f"{type_}{rows}", "a * v", renamed(times, "a", "v"), renamed(product_error(columns), "a", "v")),
        Row(f"{type_}{columns}", "w * a", renamed(times, "w", "a"), renamed(product_error(rows), "w", "a")),
        *(
            Row(f"{type_}{k}x{rows}", f"a * m{k}", renamed(times, "a", f"m{k}"), renamed(product_error(columns), "a", f"m{k}"))
            for k in SIZES
        ),
        Row("bool", "a == b", lambda a, b: (a == b).all((1, 2))),
        Row("bool", "a != b", lambda a, b: (a != b).any((1, 2))),
        Row(f"{type_}{rows}x{columns}", "transpose(a)", lambda a: np.swapaxes(a, 1, 2)),
        Row(column_type, f"a[{last}]", lambda a: column(a, last)),
        Row(type_, f"a[{last}].y", lambda a: a[:, 1, last]),
        Row(T, "y = a; y[1] = w; y[1][0] = s;", replaced),
        Row(T, f"{T}({by_columns})", lambda a: d(a)),
        Row(T, f"{T}({by_elements})", lambda a: d(a)),
        Row(T, f"y = {{{by_columns}}};", lambda a: d(a)),
        Row(T, f"{T}(s)", diagonal(rows, columns)),
        Row(T, f"{T}({other}{columns}x{rows}(a))", lambda a: rounded(d(a), DTYPES["half"])),
    ]  # fmt: skip
    if columns == rows:
        table += [
            Row(type_, "determinant(a)", lambda a: np.linalg.det(d(a)), determinant_error),
            Row(T, "y = a; y *= b;", times, product_error(columns)),
        ]
    return table


def sheet_of(type_, columns, rows):
    shapes = {
        "a": (rows, columns), "b": (rows, columns), "s": (), "v": (columns,), "w": (rows,),
        **{f"m{k}": (columns, k) for k in SIZES},
    }  # fmt: skip
    inputs = {
        "a": f"{type_}{columns}x{rows}", "b": f"{type_}{columns}x{rows}", "s": type_,
        "v": f"{type_}{columns}", "w": f"{type_}{rows}",
        **{f"m{k}": f"{type_}{k}x{columns}" for k in SIZES},
    }  # fmt: skip

    def data(rng):
        values = {
            name: rounded(rng.normal(size=(200, *shape)), DTYPES[type_])
            for name, shape in shapes.items()
        }
        values["b"][::3] = values["a"][::3]  # some are equal, some but for one element
        values["b"][::6, -1, -1] += 1
        return values

    return Sheet(f"{type_}{columns}x{rows}", inputs, data, rows_of(type_, columns, rows))


SHEETS = [sheet_of(t, c, r) for t in ("float", "half") for c, r in product(SIZES, SIZES)]


@pytest.mark.needs("more than 31 buffers")
@pytest.mark.parametrize("sheet", SHEETS, ids=str)
@pytest.mark.sample(2)
def test_matrices(sheet, kernel):
    sheet.check(kernel)
