"""Kernels in the shape for SIMT devices, run on the CPU: a device that asks for them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.codegen import matmul_forms
from metalloid.arrays.execution import evaluate as evaluation
from metalloid.arrays.library import radix_sort
from metalloid.arrays.lowering import reductions
from metalloid.runtime.devices import registry
from metalloid.runtime.devices.traits import TENSOR_CORES

RNG = np.random.default_rng(11)


@pytest.fixture
def device(monkeypatch):
    folder = str(Path(__file__).parent.parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")
    return "own:0"


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(a):
    e = mtl.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(a):
    centred = a - a.mean(axis=1, keepdims=True)
    return centred / mtl.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


def exact_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def exact_layer_norm(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("n", [64, *map(slow, [1, 3, 65, 1000]), 4098])
@pytest.mark.parametrize("first", [0, 1, slow(4)])
@pytest.mark.sample(1)
def test_four_elements_a_thread(device, n, first):
    x, y = normal(n + first), normal(n + first)
    got = mtl.asarray(x, device=device)[first:] * 2 + mtl.asarray(y, device=device)[first:]
    np.testing.assert_array_equal(np.asarray(got), x[first:] * np.float32(2) + y[first:])


def test_bundles_where_memory_allows_it(device):
    x = mtl.asarray(normal(8, 128), device=device)
    for values, is_wide in [
        (x + 1, True),
        (x[:, ::2] + 1, False),  # steps of two
        (x[:, 1:] + 1, False),  # rows that begin anywhere
        (x[1:] + 1, True),
        (x + x[0], True),
        (x.T + 1, False),
        (mtl.flip(x, axis=0) + x, True),
        (mtl.astype(x, mtl.complex64) * 2j, False),
    ]:
        assert ("read_four(" in values.msl().split("kernel void")[1]) == is_wide


def test_memory_that_begins_anywhere(device):
    """One plan: its leaves lie well at first, and then they do not."""
    x = normal(1003)
    array = mtl.asarray(x, device=device)
    for first in (0, 3, 0, 2, 1):
        view = array[first : first + 1000]
        np.testing.assert_array_equal(np.asarray(view + view), x[first : first + 1000] * 2)
        np.testing.assert_allclose(float((view * view).sum()), np.sum(
            x[first : first + 1000].astype(np.float64) ** 2), rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", *map(slow, ["int8", "bool", "int64", "float64"])])
def test_bundles_of_other_types(device, dtype):
    x, y = ((RNG.standard_normal((3, 260)) * 9).astype(dtype) for _ in range(2))
    own, other = mtl.asarray(x, device=device), mtl.asarray(y, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.where(own > other, own, other)),
                                  np.where(x > y, x, y))  # fmt: skip
    np.testing.assert_array_equal(np.asarray(own.max(axis=1)), x.max(axis=1))
    np.testing.assert_array_equal(np.asarray(own.argmin(axis=1)), x.argmin(axis=1))


@pytest.mark.parametrize("length", [*map(slow, [17, 128, 1000, 4100, 33000]), 1001, 4096])
@pytest.mark.sample(1)
def test_rows(device, length):
    x = normal(3, length)
    own, exact = mtl.asarray(x, device=device), x.astype(np.float64)
    np.testing.assert_allclose(np.asarray(softmax(own)), exact_softmax(exact), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(layer_norm(own)), exact_layer_norm(exact),
                               rtol=1e-5, atol=2e-6)  # fmt: skip
    np.testing.assert_allclose(np.asarray(own.var(axis=1)), exact.var(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(own.argmax(axis=1)), x.argmax(axis=1))


@pytest.mark.parametrize("inner", [slow(512), 1001])
def test_rows_of_two_axes(device, inner):
    x = normal(3, 5, inner)
    own, exact = mtl.asarray(x, device=device), x.astype(np.float64)
    np.testing.assert_allclose(np.asarray((own * own).sum(axis=(0, 2))), (exact**2).sum((0, 2)),
                               rtol=1e-6)  # fmt: skip
    centred = own - own.mean(axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(
        np.asarray(centred), exact - exact.mean((0, 2), keepdims=True), rtol=1e-6, atol=1e-6
    )


def test_a_row_in_registers_is_read_once(device):
    for length, fits in ((4096, True), (4098, True), (2**16, False)):
        row = mtl.asarray(normal(1, length), device=device)
        text = softmax(mtl.broadcast_to(row, (9000, length))).msl().split("kernel void")[1]
        reads = text.count("read_four(p0") + text.count("= p0[")
        assert (reads == 1) == fits


def test_results_of_the_same_rows_are_one_kernel(device):
    x = normal(70, 1000)
    a = mtl.asarray(x, device=device)
    middle = a.mean(axis=1, keepdims=True)
    results = [a.max(axis=1), ((a - middle) * (a - middle)).sum(axis=1), middle]
    assert mtl.explain(*results).count("kernel void") == 1
    mtl.eval(*results)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(np.asarray(results[0]), x.max(1))
    np.testing.assert_allclose(np.asarray(results[1]), 1000 * wide.var(1), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(results[2]), wide.mean(1, keepdims=True), atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "axis"), [((2**15,), None), ((20_003,), 0), ((3, 12_289), 1), ((2, 30, 409), (1, 2))]
)
@pytest.mark.sample(1)
def test_variances_of_long_rows(device, monkeypatch, shape, axis):
    """One pass over memory: rows of 4096 elements have their own means."""
    monkeypatch.setattr(reductions, "_CACHE_BYTES", 2**10)
    monkeypatch.setattr(reductions, "_MAX_HELD", 2**12)
    x = normal(*shape) + 3
    a = mtl.asarray(x, device=device)
    result = a.var(axis=axis, correction=1, keepdims=True)
    expected = x.astype(np.float64).var(axis=axis, ddof=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=3e-6)
    if np.size(expected) == 1 and x.size % 4096 == 0:
        text = mtl.explain(a.var(axis=axis))
        assert text.count("kernel void") == 2
        assert text.count("reads 128.0 KiB") == 1
    gradient = mtl.grad(lambda a: a.var(axis=axis).sum())(a)
    n = x.size / np.size(expected)
    wide = x.astype(np.float64)
    slope = 2 * (wide - wide.mean(axis=axis, keepdims=True)) / n
    np.testing.assert_allclose(np.asarray(gradient), slope, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("n", [*map(slow, [1, 100, 2**16]), 2**20 + 5])
def test_long_reductions(device, n):
    x = normal(n)
    x[n // 2] = x[-1] = 9  # two of them
    own, exact = mtl.asarray(x, device=device), x.astype(np.float64)
    total = float((own * own).sum())
    assert abs(total - np.sum(exact * exact)) <= 4 * max(np.log2(n), 1) * 2**-24 * total
    assert int(own.argmax()) == x.argmax()
    assert float(own.min()) == x.min()
    where_nan = np.where(np.arange(n) % 1000 == 999, np.nan, x).astype(np.float32)
    assert int(mtl.asarray(where_nan, device=device).argmin()) == where_nan.argmin()


@pytest.mark.parametrize("shape", [slow((5000, 3)), slow((300, 257)), slow((70, 4096)), (3000, 68)])
def test_columns(device, shape):
    x = normal(*shape)
    own = mtl.asarray(x, device=device)
    np.testing.assert_allclose(np.asarray(mtl.abs(own).sum(axis=0)),
                               np.abs(x.astype(np.float64)).sum(0), rtol=1e-6)  # fmt: skip
    np.testing.assert_array_equal(np.asarray(own.argmax(axis=0)), x.argmax(axis=0))
    assert ("read_four" in own.sum(axis=0).msl()) == (shape[1] >= 64 and shape[1] % 4 == 0)


@pytest.mark.parametrize("dtype", ["float32", *map(slow, ["int16", "int64", "uint8", "float64"])])
@pytest.mark.parametrize(("shape", "axis"), [slow((3,), 0), ((2, 5001), 1), slow((4100, 2), 0)])
def test_running_sums(device, dtype, shape, axis):
    x = (RNG.standard_normal(shape) * 50).astype(dtype)
    own = mtl.asarray(x, device=device)
    for values, exact in ((own, x), (own[1:], x[1:])):
        got = np.asarray(mtl.cumulative_sum(values, axis=axis, dtype=dtype))
        if "float" in dtype:
            want = np.cumsum(exact, axis=axis, dtype=np.longdouble)
            bound = 40 * np.finfo(dtype).eps * np.cumsum(np.abs(exact), axis=axis)
            assert (np.abs(got - want) <= bound).all()
        else:
            np.testing.assert_array_equal(got, np.cumsum(exact, axis=axis, dtype=dtype))


def test_running_maxima(device):
    x = RNG.standard_normal((2, 5001)).astype(np.float32)
    got = np.asarray(mtl.cummax(mtl.asarray(x, device=device), axis=1))
    np.testing.assert_array_equal(got, np.maximum.accumulate(x, axis=1))


@pytest.mark.parametrize("dtype", ["float32", slow("float16"), slow("complex64")])
def test_convolutions(device, dtype):
    x, w = normal(2, 40, 6).astype(dtype), normal(70, 5, 3).astype(dtype)
    got = np.asarray(mtl.conv1d(*(mtl.asarray(v, device=device) for v in (x, w)), 2, 1, 1, 2))
    exact = np.asarray(mtl.conv1d(mtl.asarray(x), mtl.asarray(w), 2, 1, 1, 2))
    np.testing.assert_allclose(got, exact, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", slow("int64"), slow("uint8")])
@pytest.mark.parametrize("n", [slow(20), slow(257), 900, slow(4096), slow(9001)])
def test_sorts(device, dtype, n):
    x = (RNG.standard_normal((2, n)) * 100).astype(dtype)
    own = mtl.asarray(x, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.sort(own)), np.sort(x))
    order = np.argsort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(np.asarray(mtl.argsort(own)), order)
    np.testing.assert_array_equal(np.asarray(mtl.argsort(own[1:])), order[1:])


def test_scans_of_complex_numbers(device):
    x = np.exp(1j * RNG.standard_normal((2, 9001))).astype(np.complex64)
    got = mtl.cumulative_prod(mtl.asarray(x, device=device), axis=1)
    exact = np.cumprod(x, axis=1, dtype=np.complex128)
    np.testing.assert_allclose(np.asarray(got), exact, atol=1e-3)


@pytest.mark.parametrize("dtype", [slow("int32"), slow("float64"), "uint8", slow("float16")])
def test_long_rows_are_sorted_by_digits(device, dtype):
    x = (RNG.standard_normal((9001, 3)) * 100).astype(dtype)
    x[:, 1] = 7  # no digit differs
    x[:, 2] %= 5
    own = mtl.asarray(x, device=device)
    assert mtl.explain(mtl.sort(own, axis=0)).count(". sort_by_digit ->") == x.itemsize
    np.testing.assert_array_equal(np.asarray(mtl.sort(own, axis=0)), np.sort(x, axis=0))
    order = 9000 - np.flip(np.argsort(x[::-1], axis=0, kind="stable"), 0)
    np.testing.assert_array_equal(np.asarray(mtl.argsort(own, axis=0, descending=True)), order)
    values, indices = mtl.top_k(own, 4000, axis=0)
    np.testing.assert_array_equal(np.asarray(indices), order[:4000])
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, order[:4000], 0))


@pytest.mark.slow
def test_sorts_without_forward_progress(device, monkeypatch):
    monkeypatch.setattr(radix_sort, "has_launches", lambda x, axis: False)
    x = normal(2, 9001)
    own = mtl.asarray(x, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.sort(own)), np.sort(x))
    np.testing.assert_array_equal(np.asarray(mtl.argsort(own)), np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_numbers_are_counted_on_the_device(device, dtype):
    for start, stop, step in ((0, 20_000, 1), (2**24 + 1, 2**24 + 90_000, 3), (70_000, -5, -2)):
        x = mtl.arange(start, stop, step, dtype=dtype, device=device)
        np.testing.assert_array_equal(np.asarray(x), np.arange(start, stop, step).astype(dtype))


def test_threads_sort_short_columns(device):
    x = normal(9, 1100)
    own = mtl.asarray(x, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.sort(own, axis=0)), np.sort(x, axis=0))
    order = np.argsort(-x, axis=0, kind="stable")
    np.testing.assert_array_equal(np.asarray(mtl.argsort(own, axis=0, descending=True)), order)


@pytest.mark.parametrize(
    ("first", "second"), [("C", "C"), slow("F", "C"), slow("C", "F"), slow("F", "F")]
)
@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (132, 20, 260)), slow("int8", (129, 9, 70))]
)
def test_squares_of_products(device, monkeypatch, first, second, dtype, shape):
    monkeypatch.setattr(matmul_forms, "_MANY_TILES", 1)
    m, k, n = shape
    a = (RNG.standard_normal((m, k)) * 9).astype(dtype)
    b = (RNG.standard_normal((k, n)) * 9).astype(dtype)
    left = mtl.asarray(a if first == "C" else np.ascontiguousarray(a.T), device=device)
    right = mtl.asarray(b if second == "C" else np.ascontiguousarray(b.T), device=device)
    with mtl.config.scope(products="registers"):
        product = (left if first == "C" else left.T) @ (right if second == "C" else right.T)
    assert "multiply_in_squares<" in product.msl()
    assert ", 8, " in product.msl().split("kernel void")[-1]
    exact = a.astype(np.int64) @ b.astype(np.int64) if dtype == "int8" else a.astype(float) @ b
    if dtype == "int8":
        np.testing.assert_array_equal(np.asarray(product), exact.astype(np.int8))
    else:
        bound = (k + 1) * 2**-24 * (np.abs(a).astype(float) @ np.abs(b))
        assert (np.abs(np.asarray(product) - exact) <= bound).all()


@pytest.fixture
def tensor_cores(device, monkeypatch):
    evaluation._plans.clear()
    monkeypatch.setattr(
        mtl.Buffer(4, device=device).device, "traits", TENSOR_CORES._replace(macros=())
    )
    yield device
    evaluation._plans.clear()


def of_tensor_cores(values, dtype, order, device):
    """An array that lies along rows or along columns, and what it holds exactly."""
    x = mtl.asarray(values if order == "C" else values.T.copy(), device=device).astype(dtype)
    mtl.eval(x)
    x = x if order == "C" else x.T
    return x, np.asarray(x.astype("float32")).astype(np.float64)


#: How far a factor's element may be rounded, and a result.
UNITS = {"float16": (0, 2**-11), "bfloat16": (0, 2**-8), "float32": (2**-11, 2**-24)}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize(("first", "second"), ["CC", "FC", "CF", "FF"])
def test_tensor_cores(tensor_cores, dtype, first, second):
    """By the plain MSL that stands for them elsewhere: copies, and what goes through registers."""
    left, a = of_tensor_cores(normal(136, 72), dtype, first, tensor_cores)
    right, b = of_tensor_cores(
        normal(72, 133 if second == "C" else 136), dtype, second, tensor_cores
    )
    with mtl.config.scope(tf32=True):
        got = mtl.maximum(left @ right, 0)
    assert "multiply_in_tensors<" in got.msl()
    unit, last = UNITS[dtype]
    bound = (73 * 2**-24 + 2 * unit) * (np.abs(a) @ np.abs(b)) + last * np.abs(a @ b) + 2**-25
    off = np.abs(np.asarray(got.astype("float32")) - np.maximum(a @ b, 0))
    assert (off <= bound).all()
    if dtype == "float32":  # neither exact nor rounded worse
        assert (off > 2**-16 * (np.abs(a) @ np.abs(b))).any()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [136, 62])
def test_what_becomes_of_products_of_tensor_cores(tensor_cores, columns):
    """Sums four by four or, where rows begin anywhere, one by one; small integers are exact."""
    a, b, row, c = (
        RNG.integers(-3, 4, shape).astype(np.float16)
        for shape in ((5, 72), (72, columns), (columns,), (5, columns))
    )
    x, y, bias, more = (mtl.asarray(v, device=tensor_cores) for v in (a, b, row, c))
    got = mtl.maximum((x * 2) @ y + bias, more)
    *before, text = got.msl().split("struct Params")
    assert "multiply_in_tensors<" in text
    assert ("write_four(to" in text) == (columns == 136)
    assert len(before) == 1 + (
        columns == 136
    )  # one tile of columns computes its left factor itself
    np.testing.assert_array_equal(np.asarray(got), np.maximum(2 * a.astype(int) @ b + row, c))


@pytest.mark.slow
def test_tensor_cores_and_what_is_not_finite(tensor_cores):
    a = normal(3, 8)
    a[0, 1], a[1, 2], a[2, 3] = np.inf, np.array(0x7FFFFFFF, np.uint32).view(np.float32), 3e38
    b = np.ones((8, 8), np.float32)
    with mtl.config.scope(tf32=True):
        got = np.asarray(mtl.asarray(a, device=tensor_cores) @ mtl.asarray(b, device=tensor_cores))
    assert np.isposinf(got[0]).all()
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[2]).all()


@pytest.mark.parametrize(
    ("dtype", "instruction"),
    [("float16", "m16n8k16.row.col.f32.f16.f16"), ("bfloat16", "m16n8k16.row.col.f32.bf16.bf16"),
     ("float32", "m16n8k8.row.col.f32.tf32.tf32")],
)  # fmt: skip
@pytest.mark.sample(1)
def test_instructions_of_tensor_cores(tensor_cores, dtype, instruction):
    x, _ = of_tensor_cores(normal(8, 8), dtype, "C", tensor_cores)
    with mtl.config.scope(tf32=True):
        text = (x @ x.T).msl()
    lib = mtl.library(text, target="cuda:sm_80", defines=dict.fromkeys(TENSOR_CORES.macros, True))
    ptx = lib.array_matmul.asm["ptx"]
    assert ptx.count(f"mma.sync.aligned.{instruction}.f32") == 64
    assert ptx.count("ldmatrix") == 24
    assert (
        ptx.count("cp.async.cg.shared.global") == 16
    )  # of both factors, before the loop and in it
    assert ".local" not in ptx


@pytest.mark.slow
def test_convolutions_by_tensor_cores_have_windows_in_memory(tensor_cores):
    x, w = normal(2, 20, 6).astype(np.float16), normal(8, 5, 3).astype(np.float16)
    got = mtl.conv1d(*(mtl.asarray(v, device=tensor_cores) for v in (x, w)), 2, 1, 1, 2)
    assert "multiply_in_tensors" in mtl.explain(got)
    exact = np.asarray(mtl.conv1d(mtl.asarray(x), mtl.asarray(w), 2, 1, 1, 2))
    np.testing.assert_allclose(np.asarray(got), exact, rtol=2**-9, atol=2**-9)


def test_tf32_is_asked_for(tensor_cores):
    x, _ = of_tensor_cores(normal(8, 8), "float32", "C", tensor_cores)
    assert "tensors" not in (x @ x).msl()
    with mtl.config.scope(tf32=True):
        assert "multiply_in_tensors<float, 2, 2, false, false, true, true>" in (x @ x).msl()
        fused = ((x + 1) @ x[:, :6]).msl()
        assert "multiply_in_tensors<float, 2, 2, false, false, false, false>" in fused
        host = mtl.asarray(np.ones((8, 8), np.float32), device="cpu")
        assert "tensors" not in (host @ host * 2).msl()


def test_what_tensor_cores_read_often_lies_in_memory(tensor_cores):
    x, _ = of_tensor_cores(normal(8, 200), "float16", "C", tensor_cores)
    y, _ = of_tensor_cores(normal(200, 200), "float16", "F", tensor_cores)
    alone, shared = ((2 * x) @ y[:, :60]).msl(), ((2 * x) @ (y + 1)).msl()
    assert alone.count("kernel void") == 1
    assert "multiply_in_tensors<half, 2, 2, false, true, false, true>" in alone
    assert shared.count("kernel void") == 2  # the right factor is read once, the left one often
    assert "multiply_in_tensors<half, 2, 2, false, true, true, false>" in shared


def test_wide_kernels_are_portable(device):
    x = mtl.asarray(normal(3, 4096), device=device)
    for values in (softmax(x), x.argmax(), x.sum(axis=0), x * 2, x @ x.T, mtl.flip(x).var(axis=1)):
        for text in values.msl().split("#include <metal_stdlib>")[1:]:
            mtl.library("#include <metal_stdlib>" + text, portable=True)


def test_kernels_of_cores_are_unchanged():
    text = softmax(mtl.asarray(normal(2, 4096), device="cpu")).msl()
    assert "read_four" not in text
    assert "lanes += 32" in text


@pytest.mark.parametrize(("shape", "is_transposed"), [
    slow((8, 5000, 12), False), ((32, 4097, 32), True), slow((2, 3, 1500, 4), False),
])  # fmt: skip
def test_deep_products_are_split(device, shape, is_transposed):
    """Parts of the depth, what is left of it, and stacks."""
    *batch, rows, depth, columns = shape
    a, b = RNG.random((*batch, rows, depth)), RNG.random((*batch, depth, columns))
    stored = a.swapaxes(-1, -2) if is_transposed else a
    left = mtl.asarray(np.ascontiguousarray(stored, np.float32), device=device)
    right = mtl.asarray(b.astype(np.float32), device=device)
    product = (mtl.matrix_transpose(left) if is_transposed else left) @ right
    assert "_sum" in mtl.explain(product)
    np.testing.assert_allclose(np.asarray(product), a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "depth"), [(64, 256), slow(131, 2048), slow(300, 9000), slow(2049, 260)]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_that_share_operands_are_combined(device, rows, depth, dtype):
    x, w, b, scale = (normal(*shape) for shape in [(1, depth), (rows, depth), (rows,), (rows,)])
    a, m, added, factor = (
        mtl.asarray(each, device=device).astype(dtype) for each in (x, w, b, scale)
    )
    mtl.eval(a, m, added, factor)
    x, w, b, scale = (np.asarray(each).astype(np.float64) for each in (a, m, added, factor))
    exact = x @ w.T
    bound = {"float32": 1e-5, "bfloat16": 2**-6, "float16": 2**-9}[dtype] * np.abs(exact).max()
    product = a @ m.T
    assert "first_row" in product.msl()
    np.testing.assert_allclose(np.asarray(product).astype(np.float64), exact, atol=bound)
    both = (a @ m.T) * factor + added, (a * a) @ m.T  # with operands of each row
    for result, expected in zip(both, (exact * scale + b, (x * x) @ w.T), strict=True):
        error = np.abs(np.asarray(result).astype(np.float64) - expected).max()
        assert error <= 4 * bound * max(1, np.abs(scale).max())
    largest = (a * m * factor[:, None]).max(1)  # another reduction, and a factor of each row
    expected = (x * w * scale[:, None]).max(1)
    np.testing.assert_allclose(
        np.asarray(largest).astype(np.float64), expected, rtol={"float32": 1e-6}.get(dtype, 2**-6)
    )


def test_costly_values_are_stored_where_rows_of_a_later_sum_share_them(device):
    x, w, v = (
        mtl.asarray(normal(*shape), device=device) for shape in [(1, 256), (512, 256), (64, 512)]
    )
    mtl.eval(x, w, v)

    def network(x, w, v):
        return mtl.tanh(x @ w.T) @ v.T

    text = mtl.explain(network(x, w, v))
    first, second = text.split("\n2. ")
    assert "tanh" in first
    assert "tanh" not in second
    expected = np.tanh(np.asarray(x, np.float64) @ np.asarray(w).T) @ np.asarray(v).T
    np.testing.assert_allclose(np.asarray(network(x, w, v)), expected, atol=1e-4)


def test_sums_with_a_shared_operand_are_fused_with_what_uses_them_by_element(device):
    x, scale = (mtl.asarray(normal(*shape), device=device) for shape in [(128, 512), (512,)])
    mtl.eval(x, scale)
    centred = x - (x * scale).sum(1, keepdims=True)
    assert "2. " not in mtl.explain(centred)
    rows = np.asarray(x, np.float64)
    expected = rows - (rows * np.asarray(scale)).sum(1, keepdims=True)
    np.testing.assert_allclose(np.asarray(centred), expected, atol=1e-3)
