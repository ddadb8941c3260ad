"""Plans that run again and again: where intermediate values have their memory."""

from types import SimpleNamespace

import numpy as np

import metalloid as mtl
from metalloid.arrays.execution.repeated_plan import assign_slots


def test_large_intermediate_values_share_memory_and_are_taken_from_the_pool():
    @mtl.compile
    def chain(x):
        for k in range(6):  # a reduction along each axis: its value is needed as a whole
            x = mtl.sin(x - x.sum(axis=k % 2, keepdims=True) / 600 + x.T.max(axis=0)[:, None])
        return x

    def exact(x):
        for k in range(6):
            x = np.sin(x - x.sum(axis=k % 2, keepdims=True) / 600 + x.T.max(axis=0)[:, None])
        return x

    for seed in (0, 1):
        x = np.random.default_rng(seed).random((600, 600))
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(chain(mtl.asarray(x))), exact(x), rtol=1e-9)


def test_values_that_are_alive_at_different_steps_share_a_slot():
    plan = SimpleNamespace(
        allocate=((0, 9), (1,), (2,), (3,)),
        release=((), (0,), (1,), (2,)),
        steps=(None,) * 4,  # launches of kernels
        sizes={0: 8, 1: 64, 2: 32, 3: 40},
    )
    slots = assign_slots(plan, [9, 3])
    assert slots.slot_of == {0: 0, 1: 1, 2: 0}
    assert slots.sizes == [32, 64]


def test_counting_leaves_have_offsets():
    def function(xp, x):
        return x * xp.arange(5, 105), xp.arange(3, 10)[2:], xp.argmax(x), x[3:]

    compiled = mtl.compile(lambda x: function(mtl, x))
    values = np.random.default_rng(0).random(200)
    for start in (0, 0, 50, 50):
        x = values[start : start + 100]
        got = compiled(mtl.asarray(values)[start : start + 100])
        for part, exact in zip(got, function(np, x), strict=True):
            np.testing.assert_array_equal(np.asarray(part), exact)
