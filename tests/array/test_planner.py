"""Fused and materialized nodes: counted in kernels, with the reasons that are given."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.plan import make_plan
from metalloid.arrays.planning.schedule import (
    FusedKernel,
    MaterializeReason,
    buffers_read,
    buffers_written,
)


def planned(*arrays):
    return make_plan(LinearizedGraph([array._node for array in arrays]))


def kernels(*arrays):
    return [step for step in planned(*arrays).steps if isinstance(step, FusedKernel)]


def reasons(*arrays):
    return [s.reason for s in planned(*arrays).sources if s.leaf is None]


@pytest.fixture
def x():
    return mtl.asarray(np.random.default_rng(0).random((64, 100), np.float32))


def test_elementwise_chains_are_one_kernel(x):
    y = mtl.exp(-x * x) * mtl.sin(x) + mtl.sqrt(x) / (1 + x * x)
    assert len(kernels(y)) == 1


def test_movements_cost_nothing(x):
    y = mtl.exp(mtl.flip(x.T[::2], axis=1)) + mtl.expand_dims(x, 0)[0].T[::2]
    assert len(kernels(y)) == 1


@pytest.mark.needs("the process's memory")
def test_a_view_of_known_values_launches_nothing(x):
    assert kernels(x.T) == []
    view = x.T[1:3]
    mtl.eval(view)
    assert np.shares_memory(np.asarray(view), np.asarray(x))


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (lambda x: mtl.exp(x).sum(axis=1), 1),
        (lambda x: mtl.sqrt((x * x).sum(axis=1)), 1),
        (lambda x: mtl.mean(x, axis=0), 1),
        (lambda x: mtl.exp(x - x.max(axis=1, keepdims=True)), 1),
        (lambda x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True), 1),
        (lambda x: mtl.log(mtl.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)), 1),
        (lambda x: x.argmax(axis=1), 1),
        (lambda x: mtl.var(x, axis=1), 1),
        (lambda x: x.sum(axis=0) + x.sum(axis=1)[0], 2),  # reductions along different axes
    ],
)
def test_reductions_take_in_what_is_around_them(x, expression, count):
    assert len(kernels(expression(x))) == count


def test_pieces_are_computed_into_slices_of_the_result(x):
    steps = planned(mtl.concat([x + 1, x * 2])).steps
    assert len(steps) == (1 if x.device.traits.is_simt else 2)


def test_softmax_is_one_kernel_with_two_reductions(x):
    e = mtl.exp(x - x.max(axis=1, keepdims=True))
    (kernel,) = kernels(e / e.sum(axis=1, keepdims=True))
    assert [op.kind for op in kernel.ops].count("reduce") == 2


def test_long_rows_are_shared():
    x = mtl.zeros(2**20) + 1
    first, second = kernels(x.sum())
    assert first.chunk > 0
    assert second.chunk == 0
    assert MaterializeReason.LONG_ROWS in reasons(x.sum())


def test_common_subexpressions_are_computed_once(x):
    y = mtl.exp(x) + mtl.exp(x)
    (kernel,) = kernels(y)
    assert sum(getattr(op.data, "name", "") == "exp" for op in kernel.ops) == 1


def test_costly_values_are_shared_by_kernels(x):
    costly = mtl.sin(mtl.exp(mtl.cos(x)))
    rows, columns = costly.sum(axis=1), costly.sum(axis=0)
    assert len(kernels(rows, columns)) == 3
    assert MaterializeReason.SHARED in reasons(rows, columns)


def test_cheap_values_are_recomputed(x):
    rows, columns = (x + 1).sum(axis=1), (x + 1).sum(axis=0)
    assert len(kernels(rows, columns)) == 2


def test_a_fused_value_is_materialized_the_second_time(x):
    costly = mtl.sin(mtl.exp(mtl.cos(x)))
    mtl.eval(costly + 1)
    assert MaterializeReason.RECOMPUTED_EARLIER in reasons(costly + 2)
    mtl.eval(costly + 2)
    assert len(kernels(costly + 3)) == 1
    np.testing.assert_allclose(
        np.asarray(costly + 3), np.sin(np.exp(np.cos(np.asarray(x)))) + 3, rtol=1e-6
    )


def test_an_order_that_strides_cannot_express_takes_a_copy(x):
    y = mtl.reshape(x.T, (50, 128)) + 1
    assert MaterializeReason.ORDER in reasons(y)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x).T.reshape(50, 128) + 1)


def test_a_copy_in_another_order_is_the_result(x):
    assert len(kernels(mtl.tile(x, 2))) == len(kernels(mtl.reshape(x.T, (50, 128)))) == 1
    np.testing.assert_array_equal(np.asarray(mtl.tile(x, 2)), np.tile(np.asarray(x), 2))


def test_sums_are_stored_where_other_operands_have_no_strides_in_their_shape():
    x, y = np.arange(18, dtype=np.float32).reshape(6, 1, 3), np.arange(3, dtype=np.float32)
    sums = mtl.reshape(mtl.sum(mtl.asarray(x) * 2, axis=2), (3, 2))
    z = sums * mtl.broadcast_to((mtl.asarray(y) * 3)[:, None], (3, 2))
    assert reasons(z) == [MaterializeReason.RESULT, MaterializeReason.REDUCTION]
    np.testing.assert_array_equal(z, (x * 2).sum(2).reshape(3, 2) * (y * 3)[:, None])


def test_reshaped_values_are_computed_into_their_slices():
    """Their operands may have no strides in the new shape."""
    x, y = np.arange(24, dtype=np.float32).reshape(4, 2, 3), np.arange(3, dtype=np.float32)
    rows = np.ones((2, 6), np.float32)
    scaled = mtl.reshape(mtl.asarray(x) * mtl.asarray(y), (4, 6))
    z = mtl.concat([mtl.asarray(rows), scaled])
    assert reasons(z) == [MaterializeReason.SCATTER_SLICES]
    np.testing.assert_array_equal(z, np.concatenate([rows, (x * y).reshape(4, 6)]))


def test_more_arrays_than_a_kernel_has_buffers():
    parts = [mtl.asarray(np.full(3, k, np.float32)) for k in range(70)]
    total = parts[0]
    for term in parts[1:]:
        total = total + term
    assert len(kernels(total)) > 1
    assert np.asarray(total).tolist() == [sum(range(70))] * 3


def test_what_is_too_large_is_cut_into_large_parts():
    arrays = [mtl.asarray(np.full(8, k, np.float32)) for k in range(100)]
    total = sum(a * a + 1 for a in arrays)  # 28 buffers for each kernel
    assert len(kernels(total)) == 4
    assert total.tolist() == [sum(k * k + 1 for k in range(100))] * 8


def test_hundreds_of_operations_with_common_parts_are_one_kernel(x):
    parts = [mtl.sqrt(x + k) for k in range(100)]
    y = sum(a * b for a, b in zip(parts, parts[1:] + parts[:1], strict=True))
    assert len(kernels(y)) == 1


def test_thousands_of_operations():
    x = mtl.ones(3)
    for _ in range(3000):
        x = x * 1.0 + 1.0
    assert np.asarray(x).tolist() == [3001.0] * 3


def test_chains_of_costly_functions_are_cut_into_kernels_that_compile_quickly(x):
    y = x
    for _ in range(500):
        y = mtl.sin(y)
    chain = kernels(y)
    assert len(chain) < 50
    for kernel in chain:
        assert sum(op.data.cost for op in kernel.ops if op.kind == "elementwise") <= 512


def test_many_successive_reductions():
    x = mtl.ones((4, 3))
    for _ in range(30):
        x = x - x.sum(axis=1, keepdims=True) / 3 + 1
    assert np.asarray(x).tolist() == [[1.0] * 3] * 4


def test_results_are_computed_before_later_values(x):
    y, results = x, []
    for _ in range(40):
        y = mtl.cumulative_sum(y, axis=1)
        results.append(mtl.sort(mtl.cumulative_sum(y, axis=0), axis=0)[0])
    planner = planned(*results)
    written = [max(buffers_written(step)) for step in planner.steps]
    last_read = {source: k for k, step in enumerate(planner.steps) for source in buffers_read(step)}
    alive = [
        sum(first <= k < last_read.get(source, 0) for first, source in enumerate(written))
        for k in range(len(written))
    ]
    assert max(alive) < 8


def test_values_used_twice_at_every_step_do_not_double_the_work():
    x = mtl.ones(4)
    for _ in range(25):
        x = x + x.sum() * 0.0 + mtl.flip(x) * 0.0
    assert np.asarray(x).tolist() == [1.0] * 4


def test_explain_says_why():
    x = mtl.zeros((300, 1000)) + 1
    text = mtl.explain(mtl.sin(x.sum()) + x.sum(axis=0))
    assert "requested" in text
    assert "reads" in text
    assert "threads" in text
    assert "kernel void array_" in text
    assert mtl.explain(mtl.asarray([1.0])).startswith("The values are known")


def test_sums_that_all_layers_read_are_stored():
    sums = [mtl.asarray(np.full((4, 64), k, np.float32)) for k in range(13)]
    mtl.eval(*sums)
    x, results = sums[0], []
    for more in sums[1:]:
        x = x + more
        results.append((x * x).sum(-1))  # a kernel of its own
    graph = LinearizedGraph([result._node for result in results])
    planner = make_plan(graph)
    reads = [len({op.data for op in step.ops if op.is_read}) for step in planner.steps]
    assert sum(reads) < 40, reads  # 90 if each kernel adds all of them
    np.testing.assert_array_equal(np.asarray(results[-1]), np.full(4, 78.0**2 * 64, np.float32))
