"""Transforms against the sum that defines them and against SciPy's, and their types and shapes."""

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

NORMS = ("backward", "ortho", "forward")
#: Error of a transform: some units for each stage, of which there are log2(n), relative to the root
#: of the sum of squares.
UNITS = 4


def near(got, want, dtype):
    got = np.asarray(got)
    assert got.shape == want.shape
    size = np.sqrt((np.abs(want) ** 2).sum())
    eps = float(np.finfo(dtype).eps)
    stages = max(np.log2(want.size), 1) if want.size else 1
    assert np.abs(got - want).max(initial=0) <= UNITS * eps * stages * size


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def wide(x):
    return x.astype(np.result_type(x.dtype, np.float64))


def by_definition(x, n, sign=-1):
    """The sum, for vectors along the last axis."""
    x = wide(x)[..., :n]
    x = np.concatenate([x, np.zeros((*x.shape[:-1], n - x.shape[-1]))], axis=-1)
    k = np.arange(n)
    return x @ np.exp(sign * 2j * np.pi * (np.outer(k, k) % n) / n)


ROWS = [64, 96, 128, 320, 480, 2048, 2560, 4096, pytest.param(10**6, marks=pytest.mark.slow)]


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.sample(1)
def test_lengths_that_a_kernel_transforms(n, dtype):
    x = random((3, n // 2 + 1), dtype, n)
    x[:, 0] = 5 + 2j  # transforms to real numbers ignore the imaginary part
    half, full = mtl.asarray(x), np.concatenate([x, x[:, : n - x.shape[1]]], axis=1)
    rows = mtl.asarray(full)
    near(mtl.fft.fft(rows), scipy.fft.fft(wide(full)), dtype)
    near(
        mtl.fft.ifft(rows.T, axis=0, norm="ortho").T,
        scipy.fft.ifft(wide(full), norm="ortho"),
        dtype,
    )
    near(mtl.fft.irfft(half, n=n), scipy.fft.irfft(wide(x), n), dtype)
    near(mtl.fft.hfft(half, n=n), scipy.fft.hfft(wide(x), n), dtype)
    real = full.real[:, 1:]  # padded
    near(mtl.fft.rfft(rows.real[:, 1:], n=n), scipy.fft.rfft(wide(real), n), dtype)
    near(mtl.fft.ihfft(rows.real), scipy.fft.ihfft(wide(full.real)), dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 32, 97])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.sample(5)
def test_the_definition(n, dtype):
    x = random((2, 8), dtype)
    array = mtl.asarray(x)
    got = mtl.fft.fft(array, n=n)
    assert got.dtype == np.result_type(dtype, np.complex64)
    near(got, by_definition(x, n), dtype)
    near(mtl.fft.ifft(array, n=n), by_definition(x, n, +1) / n, dtype)
    if np.dtype(dtype).kind == "f":
        half = by_definition(x, n)[..., : n // 2 + 1]
        near(mtl.fft.rfft(array, n=n), half, dtype)
        near(mtl.fft.ihfft(array, n=n), np.conj(half) / n, dtype)


@pytest.mark.parametrize(
    "implementation", ["auto", pytest.param("kernels", marks=pytest.mark.slow)]
)
@given(data=st.data())
@settings(max_examples=4)  # most lengths are kernels of their own
def test_one_axis(implementation, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    name = data.draw(st.sampled_from(["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]))
    dtype = data.draw(st.sampled_from(["float32", "float64", "complex64", "complex128"]))
    if name in ("rfft", "ihfft"):
        dtype = dtype.replace("complex64", "float32").replace("complex128", "float64")
    n = data.draw(st.none() | st.integers(1, 9))
    if name in ("irfft", "hfft") and shape[axis] == 1 and n is None:
        n = 1
    norm = data.draw(st.sampled_from(NORMS))
    x = random(shape, dtype)
    with mtl.config.scope(transforms=implementation):
        got = getattr(mtl.fft, name)(mtl.asarray(x), n=n, axis=axis, norm=norm)
    want = getattr(scipy.fft, name)(wide(x), n=n, axis=axis, norm=norm)
    double = np.finfo(dtype).bits == 64
    to_real = name in ("irfft", "hfft")
    assert got.dtype == f"{'float' if to_real else 'complex'}{32 * (1 + double) * (2 - to_real)}"
    near(got, want, dtype)


def check_multiple_axes(implementation, data):
    shape = tuple(data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3)))
    axes = data.draw(st.none() | st.permutations(range(len(shape))).flatmap(
        lambda order: st.integers(1, len(shape)).map(lambda count: tuple(order[:count]))
    ))  # fmt: skip
    name = data.draw(st.sampled_from(["fftn", "ifftn", "rfftn", "irfftn"]))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    if name != "rfftn" and data.draw(st.booleans()):
        dtype = {"float32": "complex64", "float64": "complex128"}[dtype]
    count = len(shape) if axes is None else len(axes)
    s = data.draw(st.none() | st.tuples(*[st.integers(1, 7)] * count))
    norm = data.draw(st.sampled_from(NORMS))
    x = random(shape, dtype)
    with mtl.config.scope(transforms=implementation):
        got = getattr(mtl.fft, name)(mtl.asarray(x), s=s, axes=axes, norm=norm)
    near(got, getattr(scipy.fft, name)(wide(x), s=s, axes=axes, norm=norm), dtype)


@given(data=st.data())
@settings(max_examples=6)
def test_multiple_axes(data):
    check_multiple_axes("auto", data)


@given(data=st.data())
@settings(max_examples=1)  # most lengths are kernels of their own
def test_multiple_axes_by_kernels(data):
    check_multiple_axes("kernels", data)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("options", [{}, {"s": (3, 6)}, {"axes": (2, 0), "norm": "ortho"}])
@pytest.mark.sample(2)
def test_two_axes(name, options):
    dtype = "float32" if name == "rfft2" else "complex64"
    x = random((4, 3, 5), dtype)
    got = getattr(mtl.fft, name)(mtl.asarray(x), **options)
    assert got.dtype == ("float32" if name == "irfft2" else "complex64")
    near(got, getattr(scipy.fft, name)(wide(x), **options), "float32")


def test_lengths_of_the_last_axes():
    x = random((3, 4, 5), "float32")
    got = mtl.fft.fftn(mtl.asarray(x), s=(2, -1))
    assert got.shape == (3, 2, 5)
    near(got, scipy.fft.fftn(wide(x), s=(2, 5), axes=(1, 2)), "float32")


@pytest.mark.parametrize("given", [mtl.bool, mtl.uint8, mtl.int64, mtl.float16, mtl.bfloat16])
def test_other_types_are_taken_as_float32(given):
    x = mtl.asarray([1, 0, 1, 1]).astype(given)
    assert mtl.fft.fft(x).dtype == mtl.complex64
    assert mtl.fft.irfft(x).dtype == mtl.float32
    np.testing.assert_allclose(mtl.fft.rfft(x).numpy(), [3, 1j, 1] if given == mtl.bool else
                               np.fft.rfft(x.numpy().astype(float)), atol=1e-6)  # fmt: skip


def test_nothing_along_other_axes():
    assert mtl.fft.fft(mtl.zeros((0, 4))).shape == (0, 4)
    assert mtl.fft.rfftn(mtl.zeros((4, 0)), axes=(0,)).shape == (3, 0)
    assert mtl.fft.fft(mtl.zeros((2, 0)), n=3).tolist() == [[0, 0, 0]] * 2


def test_views_are_transformed_like_copies():
    x = random((6, 8), "complex64")
    got = mtl.fft.fft(mtl.asarray(x)[::-2, 1::3].T, axis=0)
    copied = mtl.fft.fft(mtl.asarray(x[::-2, 1::3].T.copy()), axis=0)
    np.testing.assert_array_equal(got.numpy(), copied.numpy())


def test_a_filter_is_one_expression():
    x = random(64, "float32")
    array = mtl.asarray(x)
    frequencies = mtl.fft.rfftfreq(64)
    smooth = mtl.fft.irfft(mtl.fft.rfft(array) * (frequencies < 0.1))
    assert smooth._node.memory is None  # nothing is computed yet
    want = scipy.fft.irfft(scipy.fft.rfft(wide(x)) * (scipy.fft.rfftfreq(64) < 0.1))
    near(smooth, want, "float32")


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: mtl.fft.rfft(1j * mtl.ones(4)), TypeError,
     "[rfft] expected real numbers, got complex64. Use fft, fftn or ifft."),
    (lambda: mtl.fft.fft(mtl.ones(4), n=0), ValueError,
     "[fft] lengths must be at least 1, got 0 along the axes (0,) of shape (4,)."),
    (lambda: mtl.fft.irfft(mtl.ones((2, 1))), ValueError,
     "[irfft] lengths must be at least 1, got 0 along the axes (1,) of shape (2, 1)."),
    (lambda: mtl.fft.fft(mtl.ones(4), axis=1), ValueError,
     "[fft] axis 1 is out of range for an array with 1 axes."),
    (lambda: mtl.fft.fft(mtl.asarray(1.0)), ValueError,
     "[fft] axis -1 is out of range for an array with 0 axes."),
    (lambda: mtl.fft.fftn(mtl.asarray(1.0)), ValueError,
     "[fftn] there is no axis to transform in shape ()."),
    (lambda: mtl.fft.fftn(mtl.ones((2, 2)), axes=(0, -2)), ValueError,
     "[fftn] axis (0, -2) names an axis twice."),
    (lambda: mtl.fft.fftn(mtl.ones((2, 2)), s=(2,), axes=(0, 1)), ValueError,
     "[fftn] got 1 lengths (2,) for 2 axes (0, 1)."),
    (lambda: mtl.fft.fft(mtl.ones(4), norm="unitary"), ValueError,
     "[fft] norm must be 'backward', 'ortho' or 'forward', got 'unitary'."),
])  # fmt: skip
def test_messages(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
