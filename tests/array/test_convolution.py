"""Convolution and pooling against sums over NumPy's sliding windows."""

import numpy as np
import pytest

import metalloid as mtl

RNG = np.random.default_rng(11)


def windows(x, size, stride, dilation):
    """Windows of the middle axes: (batch, positions ..., channels, window ...)."""
    axes = tuple(range(1, x.ndim - 1))
    spread = [d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spread, axis=axes)
    view = view[(slice(None), *(slice(None, None, s) for s in stride))]
    return view[(..., *(slice(None, None, d) for d in dilation))]


def convolved(x, w, stride, padding, dilation, groups):
    pads = [(0, 0), *((p, p) for p in padding), (0, 0)]
    x, w = np.pad(x.astype(np.float64), pads), w.astype(np.float64)
    parts = []
    for group in range(groups):
        channels, outputs = w.shape[-1], w.shape[0] // groups
        own = windows(x[..., group * channels : (group + 1) * channels], w.shape[1:-1], stride,
                      dilation)  # fmt: skip
        filters = w[group * outputs : (group + 1) * outputs]
        axes = len(stride)
        over = ([*range(axes + 1, 2 * axes + 2)], [axes + 1, *range(1, axes + 1)])
        parts.append(np.tensordot(own, filters, over))
    return np.concatenate(parts, -1)


@pytest.mark.parametrize(
    ("shape", "filters", "stride", "padding", "dilation", "groups"),
    [
        ((2, 20, 3), (4, 5, 3), (1,), (0,), (1,), 1),
        ((1, 21, 4), (6, 3, 2), (2,), (3,), (2,), 2),
        ((2, 9, 8, 6), (4, 3, 2, 3), (2, 1), (1, 0), (1, 2), 2),
        ((1, 6, 5, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
        ((1, 9, 7, 32), (9, 3, 3, 32), (1, 1), (1, 1), (1, 1), 1),  # adjacent channels
        ((1, 9, 7, 64), (70, 2, 2, 32), (2, 1), (1, 0), (1, 2), 2),
        ((2, 8, 20, 20), (20, 3, 3, 1), (1, 1), (1, 1), (1, 1), 20),  # each channel for itself
        ((1, 70, 5), (8, 11, 5), (1,), (5,), (1,), 1),
        ((1, 5, 6, 4, 2), (3, 2, 3, 2, 2), (1, 2, 1), (1, 1, 0), (1, 1, 1), 1),
    ],
)
@pytest.mark.sample(2)
def test_convolution(shape, filters, stride, padding, dilation, groups):
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in (shape, filters))
    name = f"conv{len(stride)}d"
    args = (mtl.asarray(x), mtl.asarray(w), stride, padding, dilation, groups)
    got = np.asarray(getattr(mtl, name)(*args))
    exact = convolved(x, w, stride, padding, dilation, groups)
    size = convolved(abs(x), abs(w), stride, padding, dilation, groups)
    assert got.shape == exact.shape
    assert (abs(got - exact) <= 16 * 2**-24 * size).all()
    np.testing.assert_array_equal(np.asarray(mtl.conv_general(*args)), got)


@pytest.mark.parametrize(
    ("dtype", "unit"),
    [("float16", 2**-11), ("float64", 2**-52), ("int32", 0), ("complex64", 2**-23)],
)
@pytest.mark.parametrize("outputs", [3, 9])
@pytest.mark.sample(2)
def test_types(dtype, unit, outputs):
    def random(*shape):
        values = RNG.standard_normal(shape) * 4
        return (values + 1j * values[::-1] if dtype == "complex64" else values).astype(dtype)

    x, w = random(2, 12, 5), random(outputs, 4, 5)
    got = np.asarray(mtl.conv1d(mtl.asarray(x), mtl.asarray(w)))
    wide = "complex128" if dtype == "complex64" else "float64"
    view = np.lib.stride_tricks.sliding_window_view(x.astype(wide), 4, 1)
    exact = np.einsum("npck,okc->npo", view, w.astype(wide))
    size = np.einsum("npck,okc->npo", abs(view), abs(w.astype(wide)))
    assert got.dtype == dtype
    assert (abs(got - exact) <= unit * abs(exact) + 16 * min(unit, 2**-23) * size).all()


def test_views_are_convolved():
    x = RNG.standard_normal((6, 4, 20)).astype(np.float32)
    w = RNG.standard_normal((5, 3, 9)).astype(np.float32)
    own, filters = mtl.asarray(x)[::2, 1:].mT, mtl.asarray(w)[:3].T[::-1, :, 0:3]
    exact = convolved(x[::2, 1:].swapaxes(1, 2), w[:3].T[::-1], (2,), (0,), (1,), 1)
    got = np.asarray(mtl.conv1d(own, filters, 2))
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "stride", "channels", "is_launch"),
    [
        ((2, 2), (2, 2), 3, False),
        ((1, 4), (3, 1), 3, False),
        ((3, 2), (1, 2), 3, True),
        ((3, 3), (2, 2), 17, True),
        ((9, 8), (1, 1), 20, True),
    ],
)
def test_pooling(size, stride, channels, is_launch):
    x = RNG.standard_normal((2, 9, 8, channels)).astype(np.float32)
    x[1, 4, 4] = np.nan
    view = windows(x, size, stride, (1, 1))
    largest = mtl.max_pool(mtl.asarray(x), size, stride)
    assert ("kernel void pool_largest" in mtl.explain(largest)) == is_launch
    np.testing.assert_array_equal(np.asarray(largest), view.max((-1, -2)))
    average = np.asarray(mtl.avg_pool(mtl.asarray(x), size, stride))
    np.testing.assert_allclose(average, view.astype(float).mean((-1, -2)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int64"])
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.sample(1)
def test_types_of_pooling(dtype, size):
    x = (RNG.standard_normal((1, 12, 3)) * 60 + 100).astype(dtype)
    if dtype == "float16":
        x *= 100  # whose sums half floats cannot hold
    view = windows(x, (size,), (size,), (1,)).astype(np.float64)
    largest = mtl.max_pool(mtl.asarray(x), size)
    assert largest.dtype == dtype
    np.testing.assert_array_equal(np.asarray(largest), view.max(-1))
    average = mtl.avg_pool(mtl.asarray(x), size)
    np.testing.assert_allclose(
        np.asarray(average), view.mean(-1), rtol=2**-11 if dtype == "float16" else 1e-6
    )


def test_padding_is_never_the_largest():
    x = -np.ones((1, 4, 1), np.float32)
    assert np.asarray(mtl.max_pool(mtl.asarray(x), 2, 2, 1)).max() == -1
    integers = mtl.astype(mtl.asarray(x), mtl.int8)
    assert np.asarray(mtl.max_pool(integers, 2, 2, 1)).max() == -1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, w: mtl.conv1d(x, w), r"\[conv1d\] expected arrays and weights with 3 axes"),
        (
            lambda x, w: mtl.conv2d(x, w[..., :1]),
            r"\[conv2d\] weights of shape .* 2 channels in 1 groups",
        ),
        (
            lambda x, w: mtl.conv2d(x, w, stride=(1, 2, 3)),
            r"\[conv2d\] expected an int or 2 of them",
        ),
        (lambda x, w: mtl.max_pool(x, 9), r"\[max_pool\] a window of \(9, 9\)"),
        (lambda x, w: mtl.conv2d(x, w, stride=0), r"\[conv2d\] a window of .* stride \(0, 0\)"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call(mtl.zeros((1, 5, 5, 2)), mtl.zeros((3, 2, 2, 2)))


def test_compiled_windows():
    """Convolution, pooling and what surrounds them are one program without functions of the host."""

    def f(x, w):
        return mtl.max_pool(mtl.maximum(mtl.conv2d(x[:, ::-1], w, padding=1), 0), 3).sum(
            axis=(1, 2)
        )

    compiled = mtl.compile(f)
    for _ in range(2):
        x, w = (
            RNG.standard_normal(shape).astype(np.float32) for shape in [(2, 9, 9, 3), (8, 3, 3, 3)]
        )
        result = compiled(mtl.asarray(x), mtl.asarray(w))
        exact = np.maximum(convolved(x[:, ::-1], w, (1, 1), (1, 1), (1, 1), 1), 0)
        exact = windows(exact, (3, 3), (3, 3), (1, 1)).max(axis=(-2, -1)).sum(axis=(1, 2))
        np.testing.assert_allclose(np.asarray(result), exact, rtol=1e-4)
    explained = mtl.explain(f(mtl.asarray(x), mtl.asarray(w)))
    assert "kernel void convolve" in explained
    assert "kernel void pool_largest" in explained


@pytest.mark.parametrize(
    "dtype",
    ["float64", "int8", pytest.param("complex128", marks=pytest.mark.slow),
     pytest.param("float16", marks=pytest.mark.slow), pytest.param("bool", marks=pytest.mark.slow)],
)  # fmt: skip
def test_vectors(dtype):
    for sizes in (1, 1), (100, 70), (33, 200):
        a, b = ((RNG.random(n) * 9).astype(dtype) for n in sizes)
        for mode in "full", "same", "valid":
            for name in "convolve", "correlate":
                got = np.asarray(getattr(mtl.numpy, name)(mtl.numpy.asarray(a), b, mode))
                expected = getattr(np, name)(a, b, mode)
                assert got.dtype == dtype
                if dtype in ("int8", "bool"):
                    np.testing.assert_array_equal(got, expected)
                else:
                    np.testing.assert_allclose(got, expected, rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("mode", ["full", pytest.param("same", marks=pytest.mark.slow),
                                  pytest.param("valid", marks=pytest.mark.slow)])  # fmt: skip
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_derivatives_and_batches_of_vectors(name, mode):
    a, b, c = (RNG.standard_normal(n) for n in (7, 4, 10))
    call = getattr(mtl.numpy, name)

    def weighted(x, y):
        sums = call(x, y, mode)
        return (sums * c[: sums.size]).sum()

    gradients = mtl.grad(weighted, argnums=(0, 1))(mtl.asarray(a), mtl.asarray(b))
    matrix = np.stack([getattr(np, name)(row, b, mode) for row in np.eye(7)])
    np.testing.assert_allclose(gradients[0], matrix @ c[: matrix.shape[1]], rtol=1e-12)
    matrix = np.stack([getattr(np, name)(a, row, mode) for row in np.eye(4)])
    np.testing.assert_allclose(gradients[1], matrix @ c[: matrix.shape[1]], rtol=1e-12)
    rows, others = RNG.standard_normal((3, 7)), RNG.standard_normal((3, 4))
    for axes, second in ((0, 0), others), ((0, None), b), ((None, 0), others):
        first = rows if axes[0] == 0 else a
        got = mtl.vmap(lambda x, y: call(x, y, mode), in_axes=axes)(first, second)
        pairs = [(first[k] if axes[0] == 0 else a, second[k] if axes[1] == 0 else b)
                 for k in range(3)]  # fmt: skip
        expected = [getattr(np, name)(*pair, mode) for pair in pairs]
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
