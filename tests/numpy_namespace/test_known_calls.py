"""Calls whose nodes are made like those of earlier calls, against NumPy."""

import copy
import zlib

import numpy
import pytest
from call_texts import SIGNATURES, Call
from test_random_numpy_calls import check

import metalloid as mtl
import metalloid.numpy as own
from metalloid.arrays.ir import native
from metalloid.numpy.known_calls import KnownCalls, Watched, structural_function
from metalloid.runtime.devices import registry


def function_of(name):
    value = own
    for part in name.split("."):
        value = getattr(value, part, None)  # NumPy 2.5 has no row_stack
    return value


NAMES = [
    name for name in SIGNATURES
    if hasattr(function_of(name), "known_calls") or isinstance(function_of(name), own.ufunc)
]  # fmt: skip


@pytest.fixture
def known(monkeypatch):
    """The results of calls that were known."""
    if native.library() is None:
        pytest.skip("native functions are not available")
    for name in NAMES:
        if hasattr(function_of(name), "known_calls"):
            function_of(name).known_calls._unknown = 0  # other tests had calls with other settings
    results, function = [], native.known_call

    def observed(*args):
        result = function(*args)
        if result is not None:
            results.append(result)
        return result

    monkeypatch.setattr(native, "known_call", observed)
    return results


def with_other_values(call, rng):
    other = copy.copy(call)
    other.arrays = {
        name: rng.permutation(value.reshape(-1)).reshape(value.shape)
        for name, value in call.arrays.items()
    }
    return other


@pytest.mark.parametrize("name", NAMES)
def test_values_do_not_matter(name, known):
    rng = numpy.random.default_rng(zlib.crc32(name.encode()))
    for seed in range(3):
        call = Call(name, seed)
        for _ in range(4):
            call = with_other_values(call, rng)
            check(call)


def test_functions_have_known_calls():
    calls = (getattr(function_of(n), "known_calls", None) for n in SIGNATURES)
    assert sum(calls is not None for calls in calls) > 120


X = numpy.arange(12.0).reshape(3, 4)
Y = X[::-1] + 0.5


def repeated(function, *calls, times=4):
    """Results of a function of both namespaces for some arguments, several times in turns."""
    for _ in range(times):
        for args, options in calls:
            mine = [own.asarray(x) if isinstance(x, numpy.ndarray) else x for x in args]
            mine = [[own.asarray(x) for x in a] if isinstance(a, list) else a for a in mine]
            result = getattr(own, function)(*mine, **options)
            expected = getattr(numpy, function)(*args, **options)
            assert result.dtype == expected.dtype
            numpy.testing.assert_array_equal(result, expected)
            numpy.testing.assert_array_equal(numpy.signbit(result), numpy.signbit(expected))


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("dot", [((X[0], X[0]), {}), ((X[0], Y[0]), {}), ((Y[0], X[0]), {})]),
        ("sum", [((X,), {}), ((X,), {"axis": 0}), ((X,), {"axis": 1}), ((X, 1), {}),
                 ((X.astype("f4"),), {}), ((X.astype("i4"),), {}), ((X.T,), {"axis": 0}),
                 ((X[:, :3],), {}), ((X,), {"keepdims": True}), ((X, (0, 1)), {})]),
        ("clip", [((X - 2.5, 0.0, 2.0), {}), ((X - 2.5, -0.0, 2.0), {}), ((X - 2.5, 0, 2), {}),
                  ((X - 2.5, None, 2.0), {}), ((X - 2.5, 1.0, 2.0), {}), ((X - 2.5, Y, 9.0), {})]),
        ("concatenate", [(([X, Y],), {}), (([X, X],), {}), (([X, Y, X],), {}),
                         (([Y, X],), {"axis": 1}), (([X, Y[:2]],), {})]),
        ("hypot", [((X, Y.astype("f4")), {}), ((X, X.astype("f4")), {}), ((X, 2), {}),
                   ((X.astype("i4"), 2), {}), ((X.astype("i4"), True), {})]),
        ("where", [((X > 3, X, Y), {}), ((X > 3, Y, X), {}), ((X > 5, X, 0.0), {}),
                   ((X > 5, X, -0.0), {})]),
        ("transpose", [((X,), {}), ((X[:, 1:],), {}), ((X, (1, 0)), {}), ((X, (0, 1)), {})]),
    ],
)  # fmt: skip
def test_what_a_call_must_be_like(function, calls):
    repeated(function, *calls)


def test_results_are_computed_by_known_calls(known):
    for _ in range(4):
        x = own.asarray(X)
        y = own.sum(own.asarray(Y), axis=1) + x[0, :3]
    numpy.testing.assert_array_equal(y, Y.sum(1) + X[0, :3])
    assert len(known) >= 2
    fraction, exponent = own.frexp(x), own.frexp(own.asarray(Y))
    numpy.testing.assert_array_equal(fraction[0], numpy.frexp(X)[0])
    numpy.testing.assert_array_equal(exponent[1], numpy.frexp(Y)[1])


def test_results_with_names(known):
    for k in range(5):
        x = X[:, :3] + k + 5 * numpy.eye(3)
        sign, logarithm = result = own.linalg.slogdet(own.asarray(x))
        assert type(result).__name__ == "SlogdetResult"
        assert result.logabsdet is logarithm
        assert sign == numpy.linalg.slogdet(x)[0]
        numpy.testing.assert_allclose(logarithm, numpy.linalg.slogdet(x)[1])
    assert len(known) >= 3


def test_an_array_that_changes():
    x = own.asarray(X)
    for k in range(5):
        total = own.cumsum(x, axis=0)
        x[1] = k
        numpy.testing.assert_array_equal(total[1], X[0] + (X[1] if k == 0 else k - 1))


def test_views_of_one_memory():
    for _ in range(4):
        x = own.asarray(X)
        assert float(own.dot(x[0], x[1])) == X[0] @ X[1]
        assert float(own.dot(x[1], x[1])) == X[1] @ X[1]
        assert float(own.dot(own.asarray(Y)[2], x[1])) == Y[2] @ X[1]


def test_settings_decide():
    wide = "float64" if mtl.default_device().has_float64 else "float32"
    for _ in range(3):
        for floats, dtype in (("float64", wide), ("float32", "float32")):
            with mtl.config.scope(numpy_floats=floats):
                assert own.mean(own.asarray([1, 2, 4])).dtype == dtype


def test_transforms_see_expressions():
    x = own.asarray(X[0])
    for _ in range(4):
        own.sum(x)
        numpy.testing.assert_array_equal(mtl.grad(lambda v: own.sum(v * v))(x), 2 * X[0])
        numpy.testing.assert_array_equal(mtl.vmap(own.cumsum)(own.asarray(X)), X.cumsum(1))
        numpy.testing.assert_array_equal(mtl.compile(lambda v: own.cumsum(v) + own.sum(x))(x),
                                         X[0].cumsum() + X[0].sum())  # fmt: skip


def test_results_that_depend_on_elements_are_not_recorded():
    for k in range(5):
        mask = numpy.arange(6) >= k
        (indices,) = own.where(own.asarray(mask))
        numpy.testing.assert_array_equal(indices, numpy.flatnonzero(mask))
    assert all(len(call[0]) == 3 for call in own.where.known_calls.calls)


def test_other_arguments_are_not_looked_at_always():
    calls = KnownCalls(1)
    x = own.asarray(X)

    def learn(lowest):
        with Watched() as watched:
            result = own.clip(x, lowest, 20.0)
        calls.learn((x, lowest), {}, result, watched)

    for k in range(200):
        learn(float(k))
    assert not calls.calls
    assert len(calls._seen) < 100
    for _ in range(40):
        learn(2.0)
    assert calls.calls


def twice(function, *arrays):
    """The results of a function of both namespaces, of calls that are known and of one that is not."""
    for _ in range(4):
        results = [
            function(np, *map(np.array, arrays)) for np in (own, numpy)
        ]  # the arrays are in memory
        numpy.testing.assert_array_equal(*results)
    return results[0]


INDICES = numpy.array([[3, 0], [2, 3]])
ASSIGNMENTS = {
    "take": lambda np, x, i: np.take(x, i, 1),
    "x[i]": lambda np, x, i: x[:, i],
    "x[i, j]": lambda np, x, i: x[i % 3, i],
    "take_along_axis": lambda np, x, i: np.take_along_axis(x[:2], i, 1),
    "put": lambda np, x, i: changed(x, lambda: np.put(x, i, 0.5)),
    "put_along_axis": lambda np, x, i: changed(x, lambda: np.put_along_axis(x, i[:1], 0.5, 1)),
    "x[i] = v": lambda np, x, i: changed(x, lambda: x.__setitem__((..., i), 9)),
}


def changed(x, function):
    other = x.copy()  # `x` is not the only array with this memory
    function()
    assert other.shape == x.shape
    return x


@pytest.mark.parametrize("name", ASSIGNMENTS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "int8"])
def test_indices_of_known_calls_are_checked(name, dtype, known):
    function, indices = ASSIGNMENTS[name], INDICES.astype(dtype)
    twice(function, X, indices)
    twice(function, X, indices[::-1])
    # `i % 3` is no operand in memory; on devices of their own memory, kernels check indices
    if dtype != "int8" and name != "x[i, j]" and mtl.default_device().memory != "own":
        assert known
    if dtype != "uint32" and name != "x[i, j]":
        twice(function, X, numpy.array([[-1, 0], [2, -4]], dtype))
    for wrong in (100, -100, 4 if name != "put" else 12):
        if wrong < 0 and dtype == "uint32":
            continue
        with pytest.raises(IndexError, match="out of range"):
            numpy.asarray(function(own, own.array(X), own.array(indices).at[0, 1].set(wrong)))
    twice(function, X, indices)


@pytest.fixture
def own_memory(monkeypatch):
    """A device whose memory the host cannot access, as the default."""
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")
    with mtl.config.scope(device="own:0"):
        yield


READS = {
    "asarray": numpy.asarray,
    "repr": repr,
    "number": lambda x: float(own.sum(x)),
    "eval": mtl.eval,
    "expression": lambda x: (x * 2 + 1).tolist(),
    "element": lambda x: x[0, 0].item(),
    "DLPack": lambda x: x.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_results_of_wrong_indices_cannot_be_read(name, own_memory):
    twice(ASSIGNMENTS[name], X, INDICES)
    for read in READS.values():
        for wrong in (100, -100, 4 if name != "put" else 12):
            indices = INDICES.copy()
            indices[0, 1] = wrong
            result = ASSIGNMENTS[name](own, own.array(X), own.array(indices))
            for _ in range(2):
                with pytest.raises(IndexError, match="out of range"):
                    read(result)
    twice(ASSIGNMENTS[name], X, INDICES)


def test_indices_that_are_views_of_others(known):
    index = own.asarray(numpy.arange(8))
    for first in (0, 4, 2):
        for _ in range(3):
            result = own.take(own.asarray(X), index[first : first + 4])
            numpy.testing.assert_array_equal(result, X.ravel()[first : first + 4])
    assert known or mtl.default_device().memory == "own"
    with pytest.raises(IndexError):
        numpy.asarray(own.take(own.asarray(X[0, :3]), index[:4]))


def test_expressions_are_operands(known):
    x, y = own.asarray(X), own.asarray(Y)
    for k in range(4):
        numpy.testing.assert_array_equal(own.sum(x * y + k, axis=0), (X * Y + k).sum(0))
        numpy.testing.assert_array_equal(own.any(x < k), bool(k))
        numpy.testing.assert_array_equal(own.where(x > y, x + k, y), numpy.where(X > Y, X + k, Y))
        both = x * y
        numpy.testing.assert_array_equal(own.maximum(both, both + k), X * Y + k)
        numpy.testing.assert_array_equal(
            own.concatenate([both, both]), numpy.concatenate([X * Y] * 2)
        )
        numpy.testing.assert_array_equal(
            own.concatenate([both, x + y]), numpy.concatenate([X * Y, X + Y])
        )
    assert len(known) > 8


def test_updates_change_only_their_array(known):
    for _ in range(4):
        x = own.asarray(X)
        other, expected = x.copy(), X.copy()
        for np, a in ((own, x), (numpy, expected)):
            y = np.asarray(Y)
            above, below = np.asarray(Y > 6), np.asarray(Y < 3)
            np.fill_diagonal(a, 2)
            numpy.asarray(a)
            np.putmask(a, above, y)
            numpy.asarray(a)
            np.copyto(a, y, where=below)
            numpy.asarray(a)
            np.place(a, above, y[0, :2])
            numpy.asarray(a)
            held = a.copy()
            a[1:, ::2] = 7
            a += 1
        numpy.testing.assert_array_equal(x, expected)
        numpy.testing.assert_array_equal(other, X)
        assert held.shape == x.shape
        other.fill(3)
        numpy.testing.assert_array_equal(other, numpy.full_like(X, 3))
    assert len(known) > 8


def test_updates_of_arrays_of_numpy():
    x, expected = X.copy(), X.copy()
    for np, a in ((own, x), (numpy, expected)):
        np.fill_diagonal(a, 2)
        np.put(a, [1, 5], 8)
        np.put(a=a, ind=[2], v=4)
        np.copyto(a[0], Y[0])
    numpy.testing.assert_array_equal(x, expected)


def test_what_values_decide_is_read_each_time():
    good, wrong = own.asarray([1.0, 3.0]), own.asarray([1.0, -1.0])
    gaps, empty = own.asarray([own.nan, 2.0]), own.asarray([own.nan, own.nan])
    inside, outside = own.asarray([3, 0]), own.asarray([3, 4])
    for _ in range(4):
        assert float(own.average(good, weights=good)) == 2.5
        assert int(own.nanargmin(gaps)) == 1
        assert [int(x[0]) for x in own.unravel_index(inside, (2, 2))] == [1, 1]
        assert int(own.ravel_multi_index((inside, inside), (4, 4))[0]) == 15
        assert own.array_equal(good, good)
        assert not own.array_equal(good, wrong)
        assert own.allclose(good, good)
        assert not own.allclose(good, wrong)
        with pytest.raises(ZeroDivisionError, match="zero"):
            own.average(good, weights=wrong)
        with pytest.raises(ValueError, match="All-NaN"):
            own.nanargmin(empty)
        with pytest.raises(ValueError, match="out of range"):
            own.unravel_index(outside, (2, 2))
        with pytest.raises(ValueError, match="out of range"):
            own.ravel_multi_index((inside, outside), (4, 4))


def test_results_may_be_operands():
    x = own.asarray(X)
    for _ in range(4):
        a, b = own.copy(x), x.flatten()
        c, d = own.array(x), x.copy()
        a[0, 0], b[1], c[0, 2], d[0, 3] = 50, 51, 52, 53
        numpy.testing.assert_array_equal(x, X)
        assert [a[0, 0], b[1], c[0, 2], d[0, 3]] == [50, 51, 52, 53]
        swapped = x.copy()
        assert swapped.byteswap(inplace=True) is swapped
        numpy.testing.assert_array_equal(swapped, X.byteswap())
        numpy.testing.assert_array_equal(x, X)


def test_values_of_arrays_without_axes_are_read_each_time():
    x, matrix = own.asarray(X[0]), own.asarray(X)
    for k in [*range(4), 3, 2, 1, 0]:
        i, is_first = own.asarray(k), own.asarray(k == 0)
        assert float(x[i]) == float(own.take(x, i)) == X[0, k]
        numpy.testing.assert_array_equal(matrix[i % 3, 1:], X[k % 3, 1:])
        numpy.testing.assert_array_equal(x[is_first], X[0][numpy.asarray(k == 0)])
        expected, copied = X[0].copy(), x.copy()
        held = copied.copy()
        expected[k], copied[i] = -1, -1
        numpy.testing.assert_array_equal(copied, expected)
        numpy.testing.assert_array_equal(held, X[0])
        coordinates = own.unravel_index(own.asarray(k * 3), (3, 4))
        assert [int(c) for c in coordinates] == [k * 3 // 4, k * 3 % 4]


def test_a_function_that_reads_values_is_not_recorded(known):
    @structural_function(2)
    def plus_first(x, y):
        return x + float(y[0])

    for k in range(5):
        result = plus_first(own.asarray(X), own.asarray([float(k), 1.0]))
        numpy.testing.assert_array_equal(result, X + k)
    assert not plus_first.known_calls.calls
