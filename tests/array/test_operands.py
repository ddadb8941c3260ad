"""Operands of functions: lists, NumPy's arrays and scalars, positional axes. The oracle is NumPy."""

import itertools
import operator

import numpy as np
import pytest

import metalloid as mtl

X = [[3.0, 1.0, 2.0], [0.5, 4.0, 1.5]]
N = [[3, 1, 2], [0, 4, 1]]

#: Calls whose arguments after the first are the same for NumPy.
CALLS = {
    "sum": (X, 1), "prod": (X, 0), "max": (X, 1), "min": (X, 1), "mean": (X, 0), "var": (X, 1),
    "std": (X, 0), "any": (N, 1), "all": (N, 1), "argmax": (X, 1), "argmin": (X, 0),
    "count_nonzero": (N, 1), "cumulative_sum": (X, 0), "cumulative_prod": (N, 1),
    "nonzero": (N,), "where": (N,), "searchsorted": ([1, 2, 3], [2, 9], "right"), "take": (N, [4, 0]),
    "take_along_axis": (X, [[0], [1]], 1), "diff": (X, 1, 0), "sort": (X, 0), "argsort": (X, None),
    "reshape": (X, (3, 2), "F"), "transpose": (X,), "permute_dims": (X, (1, 0)),
    "moveaxis": (X, 0, 1), "expand_dims": (X, 1), "squeeze": ([X],), "flip": (X, 1),
    "roll": (X, 1, 1), "concat": ([X, N], 1), "stack": ([X, X], 1), "unstack": (X,),
    "broadcast_to": ([1, 2], (3, 2)), "broadcast_arrays": ([1, 2], N[0][:1]), "tile": (X, 2),
    "repeat": (X, [1, 2, 0], 1), "pad": (X, 1), "clip": (X, 1, 2), "isin": (N, [0, 4]),
    "unique_counts": (N,), "unique_all": (N,), "unique_inverse": (N,),
    "astype": (X, "int32"), "tril": (X, -1), "triu": (X, 1), "zeros_like": (X, "int32"),
    "ones_like": (X, "int32"), "full_like": (X, 2, "int32"), "meshgrid": ([1, 2], [3, 4]),
    "matrix_transpose": (X,), "matmul": (X, [1, 2, 3]), "vecdot": (X, X), "tensordot": (X, [1.0, 2], 0),
    "einsum": ("ij,ij->i", X, X), "bincount": ([0, 3, 3],), "round": (X, 0), "linspace": (0, 1),
    "zeros": (2, "int32"), "ones": (2, "int32"), "full": (2, 7, "int32"), "arange": (1, 7, 2, "int32"),
    "eye": (2, 3, 1, "int32"), "add": (X, [1, 2, 3]), "sqrt": (X,),
}  # fmt: skip


def flat(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def convert(value, to):
    """An argument whose nested lists are arrays; shapes and axes remain."""
    if isinstance(value, list) and isinstance(value[0], list) and isinstance(value[0][0], list):
        return [convert(item, to) for item in value]  # operands of concat and stack
    return to(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", CALLS)
def test_operands_of_functions(name):
    arguments = CALLS[name]
    function = np.where if name == "where" else getattr(np, name)
    if name == "astype":
        expected = np.asarray(X).astype("int32")
    else:
        taken = [np.asarray(a) if isinstance(a, list) and name not in ("concat", "stack") else a
                 for a in arguments]  # fmt: skip
        names = {"cumulative_sum": ["axis"], "cumulative_prod": ["axis"]}.get(name, [])
        split = len(taken) - len(names)
        expected = function(*taken[:split], **dict(zip(names, taken[split:], strict=True)))
    for to in (lambda v: v, lambda v: np.asarray(v, mtl.asarray(v).dtype), mtl.asarray):
        results = flat(getattr(mtl, name)(*[convert(a, to) for a in arguments]))
        for result, reference in zip(results, flat(expected), strict=True):
            assert isinstance(result, mtl.Array)
            np.testing.assert_allclose(result, reference, rtol=1e-6)


def test_positional_arguments_have_numpys_order():
    x = mtl.asarray(X)
    with pytest.raises(TypeError, match="do not support True"):
        x.std(0, True)
    assert x.mean(0, mtl.float16).dtype == mtl.float16
    np.testing.assert_array_equal(x.reshape(3, 2, order="F"), np.reshape(X, (3, 2), "F"))
    with pytest.raises(ValueError, match="order must be"):
        x.reshape(6, order="K")
    assert mtl.zeros_like(x, shape=(1, 2)).shape == (1, 2)


def test_numpys_floats_are_weak():
    x, h = mtl.asarray(X), mtl.ones(2, mtl.float16)
    results = [x * np.sqrt(2), np.sqrt(2) * x, x + np.float64(2), mtl.clip(x, np.float64(1)),
               mtl.where(x > 1, x, np.float64(0)), mtl.asarray([x[0, 0], 1.5, np.float64(2)]),
               mtl.maximum(np.float64(2), x), np.multiply(x, np.float64(2))]  # fmt: skip
    assert {str(result.dtype) for result in results} == {"float32"}
    assert (h * np.float32(2)).dtype == mtl.float16
    assert (x * np.complex128(1j)).dtype == mtl.complex64
    assert (x * np.ones((), np.float64)).dtype == mtl.float64  # an array of NumPy is not weak
    assert (mtl.arange(3, dtype=mtl.int8) + np.int64(1)).dtype == mtl.int64
    assert mtl.asarray([mtl.asarray(1, mtl.int8), 2]).dtype == mtl.int8
    assert mtl.asarray([x[0], [1, 2, 3]]).tolist() == [X[0], [1, 2, 3]]
    assert mtl.asarray([mtl.asarray(1, mtl.int8), 2.5]).tolist() == [1, 2.5]


def test_operators_take_lists_and_other_arrays():
    class Other:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    x = mtl.arange(3)
    assert (x == [0, 1, 3]).tolist() == [True, True, False]
    assert (x + [1, 2, 3]).tolist() == ([1, 2, 3] + x).tolist() == [1, 3, 5]  # noqa: RUF005
    assert (x * Other()).tolist() == [0, 1, 4]
    assert (x @ [1, 2, 3]).tolist() == ([1, 2, 3] @ x).tolist() == 8
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()


def test_powers_formats_and_edges():
    x = mtl.arange(3)
    for exponent in (-1, np.int8(-2)):
        with pytest.raises(ValueError, match=r"\[pow\] int64 to the power -"):
            x**exponent
    assert (x.astype(mtl.float32)[1:] ** -1).tolist() == [1, 0.5]
    assert f"{mtl.asarray(1.5):.3f}" == "1.500"
    with pytest.raises(TypeError, match="only an array of one element"):
        f"{x:.2f}"
    values = np.float32([1.25, -2.35, 1234.5])
    for decimals in (1, -2, 0):
        np.testing.assert_array_equal(mtl.round(values, decimals), np.round(values, decimals))
    integers = np.arange(-130, 130)
    for decimals in (-1, -2):
        expected = np.round(integers / 10**-decimals) * 10**-decimals
        np.testing.assert_array_equal(mtl.round(integers, decimals), expected)
    assert mtl.round([15, 25], 2).tolist() == [15, 25]
    assert mtl.random.uniform((2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="both x1 and x2"):
        mtl.where(x, x)


def test_linspace_between_arrays():
    start, stop = [0, 1], np.float32([4, 5])
    for num, endpoint in ((5, True), (4, False), (1, True)):
        expected = np.linspace(start, stop, num, endpoint)
        np.testing.assert_allclose(mtl.linspace(mtl.asarray(start), stop, num, endpoint), expected)
    assert mtl.linspace(0, mtl.asarray(6.0), 3).tolist() == [0, 3, 6]


def test_differences_with_numbers_at_the_ends():
    expected = np.diff(X, prepend=0, append=[[1], [2]])
    np.testing.assert_array_equal(mtl.diff(X, prepend=0, append=[[1], [2]]), expected)


def test_images_as_lists():
    image = np.arange(9.0).reshape(1, 3, 3, 1)
    for pool in (mtl.max_pool, mtl.avg_pool):
        assert pool(image.tolist(), 3).shape == (1, 1, 1, 1)
    weights = np.ones((1, 3, 3, 1)).tolist()
    assert mtl.conv2d(image.tolist(), weights).ravel().tolist() == [36]


def type_after(operation, array, other):
    """The type after an in-place operation, or None if it is refused."""
    try:
        return str(operation(array, other).dtype)
    except TypeError:
        return None


def test_inplace_operations_cast_within_a_kind_as_numpys():
    types = "bool", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"
    for old, other in itertools.product(types, types):
        for operation in operator.iadd, operator.imul, operator.itruediv:
            first, second = np.ones(2, old), np.ones(2, other)
            result = type_after(operation, mtl.asarray(first), mtl.asarray(second))
            assert result == type_after(operation, first, second), (old, other, operation)
    x = mtl.zeros(2, dtype="float32")
    x += np.asarray([0.1, 1.0])
    assert x.tolist() == np.asarray([0.1, 1.0], "float32").tolist()
    with pytest.raises(TypeError, match="would change int32 to float32"):
        operator.iadd(mtl.ones(2, dtype="int32"), mtl.ones(2))
