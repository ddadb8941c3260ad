"""`metal_kernel`: arguments that are input and output at once, updated in the caller's memory."""

import array

import numpy as np
import pytest

import metalloid as mtl


class SharesByDlpack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **_):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


ACCUMULATE = """
    uint i = elem_to_loc(thread_position_in_grid.x, total_shape, total_strides, total_ndim);
    total[i] += x;
    last[0] = 1;
"""


def accumulate(total, x, outputs=("total",), **options):
    source = ACCUMULATE if "last" in outputs else ACCUMULATE.replace("last[0] = 1;", "")
    kernel = mtl.metal_kernel("accumulate", ["total", "x"], outputs, source, **options)
    new = {"output_shapes": [(1,)], "output_dtypes": [np.int8]} if "last" in outputs else {}
    return kernel(inputs=[total, x], grid=np.asarray(total).size, **new)


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize(
    "view",
    [lambda x: x, lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(-1, 3).T],
)
@pytest.mark.sample(3)
def test_in_place_updates(contiguous, n, view):
    memory = np.arange(n, dtype=np.float32)
    expected = memory.copy()
    view(expected)[...] += 1.5
    total = view(memory)
    (result,) = accumulate(total, 1.5, ensure_row_contiguous=contiguous)
    assert result is total
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("outputs", [["last", "total"], ["total", "last"]])
def test_in_place_and_new_outputs_of_one_kernel(outputs):
    total = np.zeros(9, np.float32)
    results = dict(zip(outputs, accumulate(total, 2.0, outputs), strict=True))
    assert results["total"] is total
    assert results["last"].tolist() == [1]
    assert (total == 2).all()


@pytest.mark.parametrize(
    "kind",
    [mtl.Buffer, SharesByDlpack, lambda x: bytearray(x.tobytes()), lambda x: array.array("f", x)],
)
def test_in_place_updates_of_memory_of_other_kinds(kind):
    x = np.arange(12, dtype=np.float32)
    memory = kind(x)
    kernel = mtl.metal_kernel("add", ["x"], ["x"], "x[thread_position_in_grid.x] += 1;")
    for _ in range(3):
        (result,) = kernel(inputs=[memory], grid=12)
        assert result is memory
    if isinstance(memory, bytearray):
        assert memory == bytearray(
            (x.view(np.uint8) + (np.arange(48) < 12) * np.uint8(3)).tobytes()
        )
    else:
        seen = x if isinstance(memory, SharesByDlpack) else np.asarray(memory)
        assert seen.tolist() == list(range(3, 15))


def test_in_place_updates_of_a_torch_tensor():
    torch = pytest.importorskip("torch")
    x = torch.zeros(4, 4)
    mtl.metal_kernel("add", ["x"], ["x"], "x[thread_position_in_grid.x] += 1;")(
        inputs=[x.T[:2]], grid=8
    )
    assert x[:, :2].eq(1).all()
    assert x[:, 2:].eq(0).all()


def test_atomic_updates_in_place():
    total = np.array(0, np.int32)
    kernel = mtl.metal_kernel(
        "count", ["total"], ["total"], "atomic_fetch_add_explicit(total, 1, memory_order_relaxed);",
        atomic_outputs=True,
    )  # fmt: skip
    kernel(inputs=[total], grid=1000)
    kernel(inputs=[total], grid=(10, 10, 10))
    assert total == 2000
