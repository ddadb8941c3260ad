"""`compile(f, shapeless=True)`: one trace for all sizes, whose results equal those of calls."""

import functools
import random
import threading

import numpy as np
import pytest

import metalloid as mtl
from metalloid import TraceError


def array(*shape, seed=0):
    return mtl.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def leaves(value):
    return [np.asarray(x) for x in (value if isinstance(value, tuple | list) else [value])]


def assert_same(function, compiled, *args):
    """Compare results bit for bit."""
    for own, expected in zip(leaves(compiled(*args)), leaves(function(*args)), strict=True):
        assert own.shape == expected.shape
        assert own.dtype == expected.dtype
        assert own.tobytes() == expected.tobytes()


WEIGHTS = array(6, 4, seed=9)


def softmax(x):
    e = mtl.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(x):
    return softmax(x @ x.T * x.shape[1] ** -0.5) @ x


def attention_gradient(x):
    return mtl.grad(lambda y: (attention(y) ** 2).mean())(x)


FUNCTIONS = {
    "elementwise": lambda x: mtl.sin(x) * 2 + x,
    "reductions": lambda x: (x.sum(), x.mean(axis=1), mtl.var(x, axis=0), mtl.std(x, correction=1)),
    "reshape": lambda x: (x.reshape(-1), x.reshape(x.shape[1], x.shape[0]), x.flatten()),
    "transpose": lambda x: (x.T + 1, mtl.moveaxis(x, 0, 1), x[:, None] * x[None]),
    "slices": lambda x: (x[1:-1], x[::-2, 1:], x[: x.shape[0] - 1], x[-1], mtl.flip(x)),
    "concatenations": lambda x: (mtl.concat([x, x * 2]), mtl.stack([x, -x], axis=1), mtl.tile(x, (2, 1))),
    "creation": lambda x: (mtl.zeros(x.shape), mtl.ones_like(x), mtl.full(x.shape, x.size)),
    "arange": lambda x: (mtl.arange(x.shape[0]), mtl.arange(0, x.size, 3), mtl.eye(x.shape[1])),
    "arange of floats": lambda x: mtl.arange(x.shape[1], dtype=mtl.float32) * x,
    "updates": lambda x: (x.at[0].set(1.0), x.at[:, -1].add(2.0), mtl.roll(x, 1, axis=0)),
    "gathers": lambda x: (x[mtl.asarray([0, -1])], mtl.take_along_axis(x, mtl.argsort(x), axis=1)),
    "orders": lambda x: (mtl.sort(x, axis=0), mtl.argmax(x, axis=1), mtl.top_k(x, 2)[0]),
    "scans": lambda x: (mtl.cumulative_sum(x, axis=1), mtl.diff(x, axis=0)),
    "products": lambda x: (x @ x.T, mtl.einsum("ij,kj->ik", x, x), mtl.tensordot(x, x, axes=((1,), (1,)))),
    "attention": attention,
    "gradient": attention_gradient,
    "vmap": mtl.vmap(mtl.grad(lambda row: (row * row).mean())),
    "jvp": lambda x: mtl.jvp(lambda y: mtl.cumulative_prod(y, axis=0), [x], [x])[1][0],
    "checkpoint": mtl.grad(mtl.checkpoint(lambda x: (mtl.sin(x) / x.shape[0]).sum())),
    "random numbers": lambda x: mtl.random.uniform(shape=x.shape, key=mtl.random.key(3)),
    "inverse": lambda x: mtl.linalg.inv(x @ x.T + mtl.eye(x.shape[0])),
    "fourier": lambda x: mtl.real(mtl.fft.fft(x)),
    "integers of Python": lambda x: x * (divmod(x.size, 7)[1] + (x.shape[0] & 3) + max(x.shape[0], 2)),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_trace(name):
    function = FUNCTIONS[name]
    compiled = mtl.compile(function, shapeless=True)
    for shape in ((4, 6), (5, 3), (9, 17), (4, 6)):
        assert_same(function, compiled, array(*shape))
    assert compiled.traces == 1


def test_against_numpy():
    compiled = mtl.compile(lambda x, y: ((x - x.mean(axis=0)) @ y)[1:].reshape(-1), shapeless=True)
    for n, m, k in ((4, 3, 2), (7, 5, 9), (30, 2, 3)):
        x, y = np.asarray(array(n, m)), np.asarray(array(m, k))
        expected = ((x - x.mean(axis=0, dtype=np.float64)) @ y)[1:].reshape(-1)
        own = np.asarray(compiled(mtl.asarray(x), mtl.asarray(y)))
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
    assert compiled.traces == 1


def test_strides_types_and_axes():
    compiled = mtl.compile(lambda x: x[0] + x.sum(axis=0), shapeless=True)
    x = array(6, 8)
    for view in (x, x.T, x[::2, 1:], mtl.broadcast_to(x[0], (3, 8))):
        assert_same(compiled.__wrapped__, compiled, view)
    assert compiled.traces == 1
    assert_same(compiled.__wrapped__, compiled, x.astype(mtl.int32))
    assert_same(compiled.__wrapped__, compiled, x[None])
    assert compiled.traces == 3


def test_numbers_and_sizes():
    def function(x, n):
        return x * (n * x.shape[0]), n * x.shape[0] + 1, x.shape

    compiled = mtl.compile(function, shapeless=True)
    for k, n in ((2, 3), (5, 7), (2, 1)):
        values, number, shape = compiled(array(k), n)
        assert (number, shape) == (n * k + 1, (k,))
        assert type(shape[0]) is int
        assert np.array_equal(np.asarray(values), np.asarray(array(k)) * np.float32(n * k))
    assert compiled.traces == 1
    reshaped = mtl.compile(lambda x, n: x.reshape(n, -1), shapeless=True)
    for k, n in ((6, 2), (6, 3), (8, 2), (9, 3)):
        assert reshaped(array(k), n).shape == (n, k // n)
    assert reshaped.traces == 2  # one for each number that is a shape


def test_state_captures_and_other_results():
    table = [array(3)]
    compiled = mtl.compile(lambda x: (x + table[0].sum() + mtl.random.uniform(shape=x.shape), "text"),
                           inputs=table, shapeless=True)  # fmt: skip
    first, text = compiled(array(4))
    table[0] = array(5) + 100
    second, _ = compiled(array(6))
    assert text == "text"
    assert first.shape == (4,)
    assert second.shape == (6,)
    assert float(second.min()) > 90
    assert compiled.traces == 1


@pytest.mark.parametrize("shapes", [((2, 2), (1, 1)), ((4,), (0,)), ((50,), (7,))])
def test_the_library_chooses_by_size(shapes):
    """Extents of 1, no elements and slices beyond the end: another trace, and the right result."""
    compiled = mtl.compile(lambda x, y: (x * y, x[:10], x.reshape(-1)), shapeless=True)
    for a in shapes:
        for b in shapes:
            if a == b or 1 in a + b:
                assert_same(compiled.__wrapped__, compiled, array(*a), array(*b))
    assert compiled.traces >= 2
    assert "(no longer: " in mtl.explain(compiled)
    assert "test_shapeless.py" in mtl.explain(compiled)


def test_errors_of_the_function():
    compiled = mtl.compile(lambda x: x.reshape(2, -1) @ WEIGHTS, shapeless=True)
    assert compiled(array(12)).shape == (2, 4)
    with pytest.raises(ValueError, match=r"\[reshape\] 13 elements of shape \(13,\)"):
        compiled(array(13))
    with pytest.raises(ValueError, match=r"\[matmul\] incompatible shapes \(2, 8\) and \(6, 4\)"):
        compiled(array(16))


def kernel(x):
    doubled = mtl.metal_kernel(
        name="doubled", input_names=["x"], output_names=["y"],
        source="uint i = thread_position_in_grid.x; y[i] = 2 * x[i];",
    )  # fmt: skip
    return doubled(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype],
                   grid=(x.size, 1, 1), threadgroup=(x.size, 1, 1))[0]  # fmt: skip


READS = {
    "if": (lambda x: x * 2 if x.shape[0] > 5 else x, "4 > 5 is False"),
    "range": (lambda x: sum((x * k for k in range(x.shape[0])), x), "a size is 4"),
    "len": (lambda x: x * len(x), "a size is 4"),
    "rows": (lambda x: mtl.stack(list(x)), "a size is 4"),
    "NumPy": (lambda x: x * np.sqrt(x.shape[0]), "a size is 4"),
    "an array of NumPy": (lambda x: x + np.ones(x.shape), "a size is 4"),
    "float": (lambda x: x * float(mtl.arange(x.shape[0]).sum()), "a size is 4"),
    "text": (lambda x: x * float(f"{x.shape[0]}"), "a size is 4"),
    "a dictionary": (lambda x: x * {4: 1, 6: 2}[x.shape[0]], "a size is 4"),
    "a kernel": (kernel, "a size is 4"),
}


@pytest.mark.parametrize("name", READS)
def test_reads_are_refused(name):
    function, fact = READS[name]
    compiled = mtl.compile(function, shapeless=True)
    assert_same(function, compiled, array(4))
    assert_same(function, compiled, array(4, seed=1))
    message = rf"\[compile\] .* depends on them at .*test_shapeless\.py:\d+, where {fact} "
    with pytest.raises(ValueError, match=message):
        compiled(array(6))
    assert compiled.traces == 1
    assert_same(function, compiled, array(4, seed=2))


def test_sizes_do_not_leave_the_trace():
    outside = []

    @functools.lru_cache
    def table(n):
        return mtl.arange(n) * n

    @functools.partial(mtl.compile, shapeless=True)
    def function(x):
        outside.append(x.shape[0])
        return x + float(mtl.arange(x.shape[0]).sum())

    function(array(5))
    assert int(mtl.arange(5).sum()) == 10  # no plan has stored the extent
    with pytest.raises(TraceError, match="must not be kept outside"):
        outside[0] + 1 == 6  # noqa: B015
    with pytest.raises(TraceError, match="must not be kept outside"):
        range(outside[0])
    cached = mtl.compile(lambda x: x + table(x.shape[0]), shapeless=True)
    assert_same(cached.__wrapped__, cached, mtl.arange(7))


def test_indices_are_checked_against_each_size():
    compiled = mtl.compile(lambda x, i: x[i], shapeless=True)
    for n in (5, 9):
        assert_same(compiled.__wrapped__, compiled, array(n), mtl.asarray([-n, n - 1]))
    with pytest.raises(IndexError, match="5 is out of range for axis 0 of extent 3"):
        np.asarray(compiled(array(3), mtl.asarray([1, 5])))
    assert compiled.traces == 1


def test_threads():
    compiled = mtl.compile(attention, shapeless=True)
    failures = []

    def calls(seed):
        for n in range(2, 12):
            try:
                assert_same(attention, compiled, array(n + seed, 6, seed=seed))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert compiled.traces == 1


#: From an array (rows, columns) and a random generator to an array of two axes.
STEPS = [
    lambda x, r: x.T,
    lambda x, r: mtl.sin(x) * r.choice([0.5, 2.0]),
    lambda x, r: x - x.mean(axis=r.choice([0, 1, None]), keepdims=True),
    lambda x, r: x[r.choice([0, 1]) :, :: r.choice([1, -1])],
    lambda x, r: mtl.concat([x, x * 2], axis=r.choice([0, 1])),
    lambda x, r: x.reshape(x.shape[1], -1),
    lambda x, r: x.reshape(-1, 1) * mtl.ones((1, 2)),
    lambda x, r: x @ (x.T / x.shape[0]),
    lambda x, r: mtl.cumulative_sum(x, axis=r.choice([0, 1])),
    lambda x, r: mtl.where(x > 0, x, x.min()),
    lambda x, r: mtl.broadcast_to(x[:1], x.shape) + x,
    lambda x, r: mtl.roll(x, 1, axis=r.choice([0, 1])),
    lambda x, r: x.at[0].add(mtl.arange(x.shape[1])),
    lambda x, r: mtl.stack([x, -x]).sum(axis=r.choice([1, 2])),
    lambda x, r: x / x.size + mtl.eye(*x.shape),
    lambda x, r: mtl.grad(lambda y: (y * y).mean())(x),
]


def run_program(seed):
    generator = random.Random(seed)
    steps = [(generator.choice(STEPS), generator.random()) for _ in range(generator.randint(2, 6))]

    def function(x):
        for step, key in steps:
            x = step(x, random.Random(key))
        return x

    compiled = mtl.compile(function, shapeless=True)
    for shape in ((5, 7), (8, 4), (3, 3), (11, 6)):
        try:
            assert_same(function, compiled, array(*shape, seed=seed))
        except ValueError as error:  # a shape that the function itself refuses
            with pytest.raises(type(error)):
                function(array(*shape, seed=seed))
    return compiled.traces


def test_random_programs():
    assert sum(run_program(seed) for seed in range(2)) <= 2 * 2


@pytest.mark.slow
def test_more_random_programs():
    assert sum(run_program(seed) for seed in range(2, 200)) <= 2 * 198
