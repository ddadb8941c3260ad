"""Small independent kernels in one launch, on a device that asks for them: the CPU behaves as it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning import horizontal
from metalloid.arrays.planning.plan import make_plan
from metalloid.arrays.planning.schedule import FusedKernel, HorizontalKernel
from metalloid.runtime.devices import registry

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def device():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(Path(__file__).parent.parent), *sys.path])
        patch.setitem(registry._KINDS, "own", "own_memory_device")
        yield "own:0"


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def steps_of(*arrays):
    return make_plan(LinearizedGraph([array._node for array in arrays])).steps


def heat(xp, u):
    inner = u[1:-1, 1:-1]
    change = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
    middle = xp.concat([u[1:-1, :1], inner + 0.2 * change, u[1:-1, -1:]], axis=1)
    return xp.concat([u[:1], middle, u[-1:]], axis=0)


@pytest.mark.parametrize("shape", [(5, 7), (40, 130)])
def test_a_stencil_with_its_boundary_is_one_launch_per_step(device, shape):
    u = normal(*shape)
    result, exact = mtl.asarray(u, device=device), u.astype(float)
    for _ in range(3):
        result, exact = heat(mtl, result), heat(np, exact)
    assert [len(step.kernels) for step in steps_of(result)] == [5] * 3
    np.testing.assert_allclose(np.asarray(result), exact, rtol=1e-5, atol=1e-6)


def test_parameters_of_different_shapes_are_updated_in_one_launch(device):
    shapes = [(300, 65), (65,), (65, 3), (), (4, 3, 5)]
    old = [normal(*shape) for shape in shapes]
    gradients = [normal(*shape) for shape in shapes]

    def updated(p, g):
        moment = 0.9 * p + 0.1 * g * g
        return p - 0.1 * g / (moment + 3), moment

    arrays = [mtl.asarray(x, device=device) for x in (*old, *gradients)]
    results = [each for p, g in zip(arrays[:5], arrays[5:], strict=True) for each in updated(p, g)]
    (step,) = steps_of(*results)
    assert isinstance(step, HorizontalKernel)
    assert len(step.kernels) == 5
    mtl.eval(*results)
    exact = [each for p, g in zip(old, gradients, strict=True) for each in updated(p, g)]
    for result, expected in zip(results, exact, strict=True):
        np.testing.assert_allclose(np.asarray(result), expected, rtol=3e-6, atol=1e-6)


def test_what_depends_on_a_kernel_comes_after_it(device):
    x = mtl.asarray(normal(100), device=device)
    y = (x + 1).at[10:20].add(5.0)  # overlaps the copy
    z = mtl.sin(y.sum()) * mtl.asarray(normal(7), device=device)
    exact = np.asarray(x) + 1
    exact[10:20] += 5
    mtl.eval(y, z)
    np.testing.assert_allclose(np.asarray(y), exact, rtol=1e-6)


def test_large_kernels_are_launched_by_themselves(device, monkeypatch):
    monkeypatch.setattr(horizontal, "_MAX_ELEMENTS", 1000)
    x, y = (mtl.asarray(normal(n), device=device) for n in (1001, 1000))
    steps = steps_of(x * 2, y * 2)
    assert [isinstance(step, FusedKernel) for step in steps] == [True, True]


def test_few_cores_launch_each_kernel():
    u = mtl.asarray(normal(40, 130), device="cpu")
    assert not any(isinstance(step, HorizontalKernel) for step in steps_of(heat(mtl, u)))


@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_slices_of_slices_agree_with_numpy(device, data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    results, exact = [mtl.asarray(x, device=device)], [x]
    for _ in range(data.draw(st.integers(1, 5))):
        k = data.draw(st.integers(0, len(exact) - 1))
        axis = data.draw(st.integers(0, len(shape) - 1))
        cut = data.draw(st.integers(0, exact[k].shape[axis]))
        step = data.draw(st.sampled_from([1, 2, -1]))
        before, after = ([slice(None)] * len(shape) for _ in range(2))
        before[axis], after[axis] = slice(cut, None, step), slice(None, cut)
        for xp, values in ((mtl, results), (np, exact)):
            source = values[k]
            pieces = [source[tuple(before)] * 2, source[tuple(after)] + 1]
            values.append(xp.concat(pieces, axis=axis))
    mtl.eval(*results)
    for result, expected in zip(results, exact, strict=True):
        np.testing.assert_array_equal(np.asarray(result), expected)
