"""Kernels in the shape for many thin threads, run on the CPU: a device that asks for them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.runtime import registry

RNG = np.random.default_rng(11)


@pytest.fixture
def device(monkeypatch):
    folder = str(Path(__file__).parent.parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")
    return "own:0"


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


@pytest.mark.parametrize("n", [1, 3, 64, 65, 1000, 4098])
@pytest.mark.parametrize("first", [0, 1, 4])
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
    whole = mtl.asarray(x, device=device)
    for first in (0, 3, 0, 2, 1):
        part = whole[first : first + 1000]
        np.testing.assert_array_equal(np.asarray(part + part), x[first : first + 1000] * 2)
        np.testing.assert_allclose(float((part * part).sum()), np.sum(
            x[first : first + 1000].astype(np.float64) ** 2), rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", "int64", "float64"])
def test_bundles_of_other_types(device, dtype):
    x, y = ((RNG.standard_normal((3, 260)) * 9).astype(dtype) for _ in range(2))
    own, other = mtl.asarray(x, device=device), mtl.asarray(y, device=device)
    np.testing.assert_array_equal(np.asarray(mtl.where(own > other, own, other)),
                                  np.where(x > y, x, y))  # fmt: skip
    np.testing.assert_array_equal(np.asarray(own.max(axis=1)), x.max(axis=1))
    np.testing.assert_array_equal(np.asarray(own.argmin(axis=1)), x.argmin(axis=1))


@pytest.mark.parametrize("length", [17, 128, 1000, 1001, 4096, 4100, 33000])
def test_rows(device, length):
    x = normal(3, length)
    own, exact = mtl.asarray(x, device=device), x.astype(np.float64)
    np.testing.assert_allclose(np.asarray(softmax(own)), exact_softmax(exact), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(layer_norm(own)), exact_layer_norm(exact),
                               rtol=1e-5, atol=2e-6)  # fmt: skip
    np.testing.assert_allclose(np.asarray(own.var(axis=1)), exact.var(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(own.argmax(axis=1)), x.argmax(axis=1))


def test_a_row_in_registers_is_read_once(device):
    for length, is_kept in ((4096, True), (4098, True), (2**16, False)):
        row = mtl.asarray(normal(1, length), device=device)
        text = softmax(mtl.broadcast_to(row, (9000, length))).msl().split("kernel void")[1]
        reads = text.count("read_four(p0") + text.count("= p0[")
        assert (reads == 1) == is_kept


@pytest.mark.parametrize("n", [1, 100, 2**16, 2**20 + 5])
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


@pytest.mark.parametrize("shape", [(5000, 3), (300, 257), (70, 4096)])
def test_columns(device, shape):
    x = normal(*shape)
    own = mtl.asarray(x, device=device)
    np.testing.assert_allclose(np.asarray(mtl.abs(own).sum(axis=0)),
                               np.abs(x.astype(np.float64)).sum(0), rtol=1e-6)  # fmt: skip
    np.testing.assert_array_equal(np.asarray(own.argmax(axis=0)), x.argmax(axis=0))


def test_cores_keep_their_shape():
    text = softmax(mtl.asarray(normal(2, 4096), device="cpu")).msl()
    assert "read_four" not in text
    assert "lanes += 32" in text
