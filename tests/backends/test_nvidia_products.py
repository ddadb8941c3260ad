"""Matrix products by cuBLAS."""

import numpy as np
import pytest
from nvidia_libraries import assert_near, on, random, some, wide

import metalloid as mtl

PAIRS = [((4, 5, 7), (4, 7, 3)), ((5, 7), (4, 7, 3)), ((5, 7), (7, 3)), ((4, 5, 7), (7, 3)),
         ((1, 6), (6, 1))]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", some(1, "float16", "float32", "bfloat16", "float64", "complex64", "complex128")
)
@pytest.mark.parametrize("shapes", some(1, *PAIRS))
@pytest.mark.parametrize("transposed", some(2, (0,), (1,), (), (0, 1)))
def test_products(device, rng, dtype, shapes, transposed):
    kind = mtl.asarray([0], dtype=dtype).numpy().dtype
    x, y = (random(rng, shape, np.complex64 if kind.kind == "c" else np.float32).astype(kind)
            for shape in shapes)  # fmt: skip
    a, b = on(device, x), on(device, y)
    if 0 in transposed:
        a = on(device, np.ascontiguousarray(np.swapaxes(x, -1, -2))).mT
    if 1 in transposed:
        b = on(device, np.ascontiguousarray(np.swapaxes(y, -1, -2))).mT
    want = wide(x) @ wide(y)
    got = (a @ b).numpy()
    assert_near(got, want, 4 if kind.itemsize > 2 else 1)


@pytest.mark.slow
def test_a_product_of_parts_of_matrices(device, rng):
    x = random(rng, (9, 12), "float32")
    a = on(device, x)
    assert_near((a[1:6, 2:9] @ a[2:9, 1:4]).numpy(), wide(x)[1:6, 2:9] @ wide(x)[2:9, 1:4], 4)
    assert_near((a[::2, ::3] @ a[:4, ::2]).numpy(), wide(x)[::2, ::3] @ wide(x)[:4, ::2], 4)


def test_many_rows_with_the_same_sums_in_half_precision(device):
    x = np.ones((8, 5000), np.float16)
    assert (on(device, x) @ on(device, x).mT).tolist() == [[5000.0] * 8] * 8  # not 2048


def test_an_empty_product(device):
    assert (mtl.ones((2, 0), device=device) @ mtl.ones((0, 3), device=device)).tolist() == [
        [0] * 3
    ] * 2
