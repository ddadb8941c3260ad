"""Multi-output fusion: kernels with several outputs, and parts that are computed in place."""

import numpy as np
import pytest

import metalloid as mtl

SHAPE = (37, 50)


@pytest.fixture
def values(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.random(SHAPE, np.float32) + np.float32(0.5) for _ in range(3)]


def kernels(*results: mtl.Array) -> int:
    """Launches of one evaluation of all results."""
    return mtl.explain(*results).count("kernel void")


def check(results: list[mtl.Array], expected: list[np.ndarray]) -> None:
    mtl.eval(*results)
    for result, wide in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), wide, rtol=1e-5, atol=1e-6)


def oscillate(x, v):
    for _ in range(20):
        v = v - 0.1 * x
        x = x + 0.1 * v
    return [x, v]


def test_results_with_common_operations_are_one_kernel(values):
    x, v = map(mtl.asarray, values[:2])
    assert kernels(*oscillate(x, v)) == 1
    wide = [a.astype(np.float64) for a in values[:2]]
    check(oscillate(x, v), oscillate(*wide))


def test_a_result_that_another_one_uses_is_not_reread(values):
    def program(xp, a):
        e = xp.exp(a)
        return [e, e * a, e - a]

    x = mtl.asarray(values[0])
    assert kernels(*program(mtl, x)) == 1
    check(program(mtl, x), program(np, values[0].astype(np.float64)))


def test_results_at_other_indices_need_their_own_kernel(values):
    """The second kernel reads elements that other threads of the first one store."""

    def program(xp, a):
        e = xp.exp(a)
        return [e, e[::-1] * 2 + e]

    x = mtl.asarray(values[0])
    assert kernels(*program(mtl, x)) == 2
    check(program(mtl, x), program(np, values[0].astype(np.float64)))


def test_unrelated_results_are_not_merged_on_cpus(values):
    x, y = mtl.asarray(values[0]), mtl.asarray(values[1])
    assert kernels(x + 1, y * 2) == (1 if x.device.traits.is_simt else 2)


def test_members_of_a_stack_are_stored_by_one_kernel(values):
    def program(xp, a, b):
        return [xp.stack([a * b, a - b, a + b], axis=-1)]

    own = [mtl.asarray(a) for a in values[:2]]
    assert kernels(*program(mtl, *own)) == 1
    check(program(mtl, *own), program(np, *(a.astype(np.float64) for a in values[:2])))


def test_parts_that_overlap_are_stored_in_order(values):
    """Each write covers a part of the one before."""

    def program(xp, a):
        out = xp.zeros(SHAPE, dtype=xp.float32)
        if xp is np:
            out[:, 1:] = a[:, 1:] * 2
            out[:, :-1] = a[:, :-1] * 3
            out[:, 2:] = a[:, 1:-1]
            return [out]
        out = out.at[:, 1:].set(a[:, 1:] * 2)
        out = out.at[:, :-1].set(a[:, :-1] * 3)
        return [out.at[:, 2:].set(a[:, 1:-1])]

    check(program(mtl, mtl.asarray(values[0])), program(np, values[0]))


@pytest.mark.parametrize("has_two_users", [False, True])
def test_a_concatenation_in_another_one_is_not_copied(values, has_two_users):
    def program(xp, a, b):
        inner = xp.concat([a[:, :1], xp.exp(b[:, 1:-1]), a[:, -1:]], axis=1)
        outer = xp.concat([b[:1], inner[1:-1] if has_two_users else inner, b[-1:]], axis=0)
        return [outer, inner] if has_two_users else [outer]

    own = [mtl.asarray(a) for a in values[:2]]
    if not has_two_users:
        report = mtl.explain(*program(mtl, *own))
        assert "[37, 50]" not in report  # no buffer of the inner shape
    check(program(mtl, *own), program(np, *(a.astype(np.float64) for a in values[:2])))


def test_more_outputs_than_one_kernel_has(values):
    x = mtl.asarray(values[0])
    results = [x * float(k) for k in range(1, 13)]
    assert kernels(*results) == (1 if x.device.traits.is_simt else 2)
    check(results, [values[0] * float(k) for k in range(1, 13)])


def test_types_of_outputs_may_differ(values):
    x = mtl.asarray(values[0])
    results = [x > 1, mtl.astype(x * 100, mtl.int16), x.astype(mtl.float16) + 1]
    assert kernels(*results) == 1
    expected = [values[0] > 1, (values[0] * 100).astype(np.int16)]
    mtl.eval(*results)
    for result, wide in zip(results[:2], expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), wide)


@pytest.mark.parametrize("shape", [(70_000,), (3, 70_000), (40, 3000)])
def test_sums_of_the_same_rows_are_one_kernel(shape, rng):
    a = rng.random(shape, np.float32)
    x = mtl.asarray(a)
    y = mtl.asarray(np.where(a < 0.1, np.nan, a))

    def sums(x, y):
        return [x.sum(-1), (x * x).sum(-1), (x > 0.5).astype(mtl.int32).sum(-1), y.sum(-1)]

    results = sums(x, y)
    alone = [mtl.asarray(each) for each in map(np.asarray, sums(x, y))]
    if not x.device.traits.is_simt:
        assert kernels(*sums(x, y)) < sum(map(kernels, sums(x, y)))
    mtl.eval(*results)
    for result, other in zip(results, alone, strict=True):  # the order of additions is the same
        np.testing.assert_array_equal(result, other)
    wide = a.astype(np.float64)
    check(results[:3], [wide.sum(-1), (wide * wide).sum(-1), (a > 0.5).sum(-1)])


def test_extremes_of_the_same_rows_are_one_kernel(rng):
    a = rng.standard_normal((3, 70_000))
    x = mtl.asarray(a)
    if not x.device.traits.is_simt:
        assert kernels(x.max(-1), x.min(-1)) < kernels(x.max(-1)) + kernels(x.min(-1))
    check([x.max(-1), x.min(-1), x.sum(-1)], [a.max(-1), a.min(-1), a.sum(-1)])
    a[1, 777] = np.nan
    y = mtl.asarray(a)
    check([y.max(-1), y.min(-1)], [a.max(-1), a.min(-1)])
