"""Matrix products by kernels of ours, against NumPy in wider types, and what is fused into them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from product_oracles import check, random

import metalloid as mtl
from metalloid.arrays.planning import packing
from metalloid.runtime.devices.traits import BFLOAT_DOTS, FEW_CORES

TYPES = [
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int8", "uint16",
    "int32", "int64", "uint64",
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.sample(2)
def test_every_type(dtype):
    a, b = random((70, 45), dtype), random((45, 67), dtype)
    with mtl.config.scope(products="registers"):
        check(mtl.asarray(a) @ mtl.asarray(b), a, b)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.sample(1)
def test_depths_of_multiple_steps_of_panels(dtype):
    a, b = random((2, 13, 1100), dtype), random((1100, 45), dtype)
    with mtl.config.scope(products="panels"):
        check(mtl.asarray(a) @ mtl.asarray(b), a, b)
        check(
            mtl.asarray(a[:, :, :1025].copy()) @ mtl.asarray(b.T.copy()).T[:1025],
            a[:, :, :1025],
            b[:1025],
        )


@pytest.mark.parametrize("threads", [1, 2])
def test_panels_do_not_depend_on_the_number_of_cores(threads):
    a = mtl.asarray(random((200, 300), "float32"), device="cpu")
    runtime = mtl.Buffer(4, device="cpu").device.runtime
    with mtl.config.scope(products="panels"):
        want = np.asarray(a @ a.T)
        runtime.configure(threads)
        try:
            assert np.array_equal(np.asarray(a @ a.T), want)
        finally:
            runtime.configure(mtl.config.num_threads)


FACTORS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "sliced": lambda x: x[1:, ::2],
}
SHAPE_BEFORE = {
    "plain": lambda m, n: (m, n),
    "transposed": lambda m, n: (n, m),
    "reversed": lambda m, n: (m, n),
    "sliced": lambda m, n: (m + 1, 2 * n),
}
EXTENTS = st.sampled_from([0, 2, 7, 31, 63, 64, 65, 129])  # 1 would be another text


@settings(max_examples=5, deadline=None)
@given(
    m=EXTENTS,
    n=EXTENTS,
    k=EXTENTS,
    factors=st.sampled_from(
        [
            ("plain", "plain"),
            ("transposed", "plain"),
            ("plain", "transposed"),
            ("sliced", "reversed"),
        ]
    ),
    backend=st.sampled_from(["panels", "dots", "registers", "simdgroups"]),
)
def test_shapes_and_strides(m, n, k, factors, backend):
    first, second = factors
    a, b = (
        random(SHAPE_BEFORE[first](m, k), "float32"),
        random(SHAPE_BEFORE[second](k, n), "float32"),
    )
    with mtl.config.scope(products=backend):
        product = FACTORS[first](mtl.asarray(a)) @ FACTORS[second](mtl.asarray(b))
    check(product, FACTORS[first](a), FACTORS[second](b))


@pytest.mark.parametrize(("backend", "dtype"), [("auto", "float32"), ("registers", "int32")])
@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 1, 5, 4), (3, 4, 6)), ((4,), (3, 4, 6)), ((3, 5, 4), (4,)), ((4,), (4,)), ((0, 3), (3, 2)),
     ((3, 0), (0, 2)), ((2, 0, 3), (3, 4)), ((0, 2, 3), (3, 4)), ((1, 1), (1, 1)), ((2, 3, 1, 1, 5), (3, 2, 5, 1))],
)  # fmt: skip
@pytest.mark.sample(2)
def test_batches_and_vectors(first, second, backend, dtype):
    a, b = random(first, dtype), random(second, dtype)
    with mtl.config.scope(products=backend):
        check(mtl.asarray(a) @ mtl.asarray(b), a, b)


def kernels(*values):
    """The number of steps that compute the values, and the explanation."""
    text = mtl.explain(*values)
    return sum(line[:1].isdigit() and ". " in line for line in text.splitlines()), text


X, W = random((3, 70, 40), "float32"), random((40, 66), "float32")
BIAS, ROWS, LIKE = (
    random((66,), "float32"),
    random((70, 1), "float32"),
    random((3, 70, 66), "float32"),
)
CHAINS = {
    "relu": lambda y, f: mtl.maximum(y + f(BIAS), 0),
    "residual": lambda y, f: f(LIKE) + y * f(ROWS) * 2,
    "gelu": lambda y, f: y * (1 + mtl.erf(y * 0.7071)) / 2,
    "cast": lambda y, f: mtl.astype(mtl.clip(mtl.round(y), -127, 127), mtl.int8),
    "mask": lambda y, f: mtl.where(mtl.arange(70)[:, None] >= mtl.arange(66), y, -mtl.inf),
    "counted": lambda y, f: y * mtl.arange(3, dtype=mtl.float32)[:, None, None],
    "reshaped": lambda y, f: mtl.reshape(y, (3, 7, 10, 66)) + f(BIAS),
}


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "registers") for name in CHAINS), ("residual", "simdgroups")]
)
@pytest.mark.sample(2)
def test_operations_on_a_product_are_fused_with_it(name, backend):
    chain = CHAINS[name]
    with mtl.config.scope(products=backend):
        product = mtl.asarray(X) @ mtl.asarray(W)
        fused = chain(mtl.asarray(X) @ mtl.asarray(W), mtl.asarray)
    count, text = kernels(fused)
    assert count == 1, text
    assert "numpy::multiply_in_" in text
    mtl.eval(product)
    assert np.array_equal(np.asarray(fused), np.asarray(chain(product, mtl.asarray)))


def test_a_bias_that_a_reshaped_product_has_no_strides_for():
    """Rows of the product are those of both axes together, along which the bias repeats."""
    bias, rows = mtl.asarray(LIKE[0]), mtl.asarray(X.reshape(210, 40))
    with mtl.config.scope(products="registers"):
        product, other = (rows @ mtl.asarray(W) for _ in range(2))
    both = mtl.reshape(product, LIKE.shape) + bias
    assert kernels(both)[0] == 2
    mtl.eval(other)
    assert np.array_equal(np.asarray(both), np.asarray(mtl.reshape(other, LIKE.shape) + bias))


def test_stacks_by_one_matrix_are_one_product():
    with mtl.config.scope(products="registers"):
        x = mtl.asarray(X)
        stacked, single = x @ mtl.asarray(W), x[:, :, None] @ mtl.asarray(W)
        transposed = x.mT @ mtl.asarray(W[:1].repeat(70, 0))
    for each in (stacked, single):
        assert re.search(r"\n   \d+ x 4 threads", mtl.explain(each))
    check(stacked, X, W)
    check(single, X[:, :, None], W)
    check(transposed, X.swapaxes(1, 2), W[:1].repeat(70, 0))


def test_halves_are_rounded_as_if_the_product_lay_in_memory():
    x, w, b = (mtl.asarray(v.astype(np.float16)) for v in (X, W, BIAS))
    with mtl.config.scope(products="registers"):
        product = x @ w
        fused = mtl.maximum(x @ w + b, 0)
    assert kernels(fused)[0] == 1
    mtl.eval(product)
    assert np.array_equal(np.asarray(fused), np.asarray(mtl.maximum(product + b, 0)))


WEIGHTS = random((40, 66), "int8")


def test_cheap_factors_are_computed_where_they_are_read():
    with mtl.config.scope(products="registers"):
        weights = mtl.astype(mtl.asarray(WEIGHTS), mtl.float32) * mtl.asarray(BIAS)
        product = mtl.asarray(X) @ weights
    assert kernels(product)[0] == 1
    check(product, X, WEIGHTS.astype(np.float32) * BIAS)


def test_costly_factors_are_computed_once():
    with mtl.config.scope(products="registers"):
        product = mtl.tanh(mtl.asarray(X)) @ mtl.asarray(W)
        normed = (mtl.asarray(X) / mtl.asarray(X).sum(axis=2, keepdims=True)) @ mtl.asarray(W)
    for each in (product, normed):
        count, text = kernels(each)
        assert count == 2
        assert "a factor of a product, too costly" in text
    check(product, np.asarray(mtl.tanh(mtl.asarray(X))), W)


USES = {
    "two results": lambda y: (mtl.exp(y), y + 1),
    "also transposed": lambda y: (y + y.T,),
    "and its sum": lambda y: (y / y.sum(),),
    "rows and elements": lambda y: (mtl.exp(y - y.max(axis=1, keepdims=True)),),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("backend", ["host", "registers"])
def test_a_product_is_computed_once(name, backend):
    with mtl.config.scope(products=backend):
        product, same = (mtl.asarray(W[:, :40]) @ mtl.asarray(W[:, :40]) for _ in range(2))
    values = USES[name](product)
    text = mtl.explain(*values)
    assert text.count("numpy::multiply_in_" if backend == "registers" else "matmul, a") == 1
    if backend == "registers" and name == "rows and elements":
        assert "a matrix product whose users need several elements" in text
    want = USES[name](mtl.asarray(np.asarray(same)))
    for got, expected in zip(values, want, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-3)


def test_sums_of_products_and_products_of_products():
    with mtl.config.scope(products="registers"):
        x, w = mtl.asarray(X), mtl.asarray(W)
        both = x @ w + mtl.asarray(X * 2) @ w
        chain = mtl.maximum(x @ w, 0) @ w.T
    assert kernels(both)[0] == 2
    assert kernels(chain)[0] == 2
    want = np.maximum(X.astype(np.float64) @ W, 0) @ W.T.astype(np.float64)
    bound = 120 * 2**-24 * (abs(X).astype(np.float64) @ abs(W) @ abs(W.T))
    assert (abs(np.asarray(chain) - want) <= bound).all()


def test_what_reads_too_many_arrays_is_split():
    w = mtl.asarray(W)
    with mtl.config.scope(products="registers"):
        product = mtl.asarray(W[:, :40]) @ w
    others = [mtl.asarray(W + k) for k in range(30)]
    total = product
    for other in others:
        total = total + other
    want = np.asarray(mtl.asarray(W[:, :40]) @ w)
    for k in range(30):
        want = want + (W + k)
    np.testing.assert_allclose(np.asarray(total), want, rtol=1e-5)


def test_complex_numbers_of_an_epilogue():
    a, b = random((20, 30), "complex64"), random((30, 10), "complex64")
    with mtl.config.scope(products="registers"):
        product = mtl.asarray(a) @ mtl.asarray(b)
        fused = (mtl.asarray(a) @ mtl.asarray(b)) * (1 + 2j) + mtl.asarray(b[:1])
    assert kernels(fused)[0] == 1
    mtl.eval(product)
    assert np.array_equal(np.asarray(fused), np.asarray(product * (1 + 2j) + mtl.asarray(b[:1])))


CPU = mtl.ones(1).device


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int8"])
@pytest.mark.parametrize("stack", [(), (3,)])
@pytest.mark.sample(1)
def test_column_major_factors_are_packed(monkeypatch, dtype, stack):
    """Extents are around those of panels, and the depth around the steps that are added up."""
    monkeypatch.setattr(packing, "packed_factors", lambda *_: (True, True))
    for m, n, k in [(64, 32, 7), (65, 33, 129), (31, 70, 1030), (2, 3, 2)]:
        left, right = random((*stack, k, m), dtype), random((n, k), dtype)
        with mtl.config.scope(products="panels"):
            product = mtl.asarray(left).mT @ mtl.asarray(right).T
            rows = mtl.asarray(left)[..., 1:].mT[..., 1:, :] @ mtl.asarray(right)[:, :].T
        is_one_stack = m % 32 == 0 or not stack
        assert mtl.explain(product).count("numpy::pack_panel") == 1 + is_one_stack
        check(product, left.swapaxes(-1, -2), right.T)
        check(rows, left[..., 2:].swapaxes(-1, -2), right.T)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize(("registers", "nbytes"), [(16, 16), (16, 32), (32, 64)])
@pytest.mark.sample(1)
def test_tiles_of_other_processors(monkeypatch, registers, nbytes, dtype):
    """Rows and columns are around those of sums and of threadgroups."""
    traits = FEW_CORES._replace(vector_registers=registers, vector_bytes=nbytes)
    monkeypatch.setattr(CPU, "traits", traits)
    for m, n, k in [(1, 139, 70), (97, 33, 40), (6, 9, 300), (66, 2, 37), (35, 1, 65)]:
        left, right = random((m, k), dtype), random((k, n), dtype)
        columns = mtl.asarray(right.T.copy()).T
        with mtl.config.scope(products="panels"):
            check(mtl.asarray(left) @ mtl.asarray(right), left, right)
        with mtl.config.scope(products="dots"):
            check(mtl.asarray(left) @ columns, left, right)


@pytest.mark.needs("the CPU")
def test_bfloats_are_multiplied_in_pairs(monkeypatch):
    """Where the processor has an instruction for it; depths are even, odd, and of several steps."""
    monkeypatch.setattr(CPU, "traits", BFLOAT_DOTS)
    for shape, depth in [((101, 102), 7), ((8, 70), 130), ((3, 64, 70), 513), ((66, 31), 1031)]:
        a, b = random((*shape[:-1], depth), "bfloat16"), random((depth, shape[-1]), "bfloat16")
        with mtl.config.scope(products="panels"):
            for left in (mtl.asarray(a), mtl.asarray(a.swapaxes(-1, -2).copy()).mT):
                for right in (mtl.asarray(b), mtl.asarray(b.T.copy()).T):
                    check(left @ right, a, b)
    assert mtl.explain(left @ right).count("-> uint32") == 2
    # A row-major left factor of even depth is read in place.
    a, b = random((70, 67), "bfloat16"), random((66, 20), "bfloat16")
    with mtl.config.scope(products="panels"):
        product = mtl.asarray(a)[1:, 1:] @ mtl.asarray(b)
    assert mtl.explain(product).count("-> uint32") == 1
    check(product, a[1:, 1:], b)


@pytest.mark.needs("the CPU")
def test_a_matrix_is_packed_once_for_a_stack(monkeypatch):
    monkeypatch.setattr(CPU, "traits", FEW_CORES)
    with mtl.config.scope(products="panels"):
        product = mtl.asarray(X) @ mtl.asarray(W.T.copy()).T
    text = mtl.explain(product)
    assert "pack_panels -> float32[1, 3, 40, 32]" in text
    assert re.search(r"\n   \d+ x 4 threads", text)
    check(product, X, W)


def test_vectors_by_what_is_computed_are_sums():
    """The bytes of quantised weights are read, and nothing else."""
    weights, scales = (
        mtl.asarray(random((512, 256), "int8")),
        mtl.asarray(random((512, 1), "float32")),
    )
    x = random((256,), "float32")
    y = (mtl.astype(weights, mtl.float32) * scales) @ mtl.asarray(x)
    assert kernels(y)[0] == 1
    a = np.asarray(weights).astype(np.float64) * np.asarray(scales)
    assert (abs(np.asarray(y) - a @ x) <= 260 * 2**-24 * (abs(a) @ abs(x))).all()


def test_integers_wrap_around():
    a = np.full((3, 300), 2**31 - 1, np.int32)
    with mtl.config.scope(products="registers"):
        check(mtl.asarray(a) @ mtl.asarray(a.T), a, a.T)


def test_the_text_depends_on_structure_only():
    def text(m, k, n):
        with mtl.config.scope(products="registers"):
            product = mtl.ones((m, k), dtype=mtl.int32) @ mtl.ones((k, n), dtype=mtl.int32)
        return (product + 1).msl()

    assert text(3, 4, 5) == text(100, 200, 300)


@pytest.mark.slow
def test_the_next_rows_are_too_far_for_32_bits():
    depth = 2**26 + 3
    with mtl.config.scope(products="panels"):
        left, right = (np.ones(shape, np.int8) for shape in ((2, depth), (depth, 4)))
        product = mtl.asarray(left) @ mtl.asarray(right)
        assert np.all(np.asarray(product) == 3)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "int8", "float32"])
def test_large(dtype):
    a, b = random((700, 1100), dtype), random((1100, 900), dtype)
    with mtl.config.scope(products="registers"):
        check(mtl.asarray(a) @ mtl.asarray(b), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("depth", "columns"), [(3, 3), (1, 2), (4, 2), (2, 4)])
@pytest.mark.sample(2)
def test_short_rows_and_a_small_matrix(rng, dtype, depth, columns):
    points, matrix = rng.random((2, 2500, depth)), rng.random((depth, columns))
    x, m = mtl.asarray(points, dtype=dtype), mtl.asarray(matrix, dtype=dtype)
    product = mtl.sqrt(x + 1) @ m.T.T * 2
    expected = np.sqrt(points + 1) @ matrix * 2
    np.testing.assert_allclose(np.asarray(product), expected, rtol=8 * np.finfo(dtype).eps)
    transposed = mtl.asarray(np.asarray(rng.random((depth, 5000)), dtype)).T
    np.testing.assert_allclose(
        np.asarray(transposed @ m), np.asarray(transposed).astype(float) @ np.asarray(m).astype(float),
        rtol=8 * np.finfo(dtype).eps,
    )  # fmt: skip


@pytest.mark.needs("the CPU")
def test_short_rows_times_a_small_matrix_take_no_call_of_the_host():
    text = mtl.explain(mtl.zeros((5000, 3)) @ mtl.asarray(np.eye(3, dtype=np.float32)))
    assert "a function of its own" not in text
