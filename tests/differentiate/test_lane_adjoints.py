"""Adjoints through simd and quad functions agree with complex steps of NumPy models."""

import numpy as np
import pytest
from differences import adjoints

N = 64


def in_groups(function, size=32):
    def model(v, *more):
        groups = [function(g, *more) for g in v.reshape(-1, size)]
        return np.concatenate([np.broadcast_to(g, size) for g in groups])

    return model


def extreme(pick):
    return lambda v: v[pick(v.real)]


LANE = np.arange(32)
#: The call on a value `v` of a thread, and the same on the values of all threads.
CALLS = {
    "simd_sum(v)": in_groups(np.sum),
    "simd_product(v)": in_groups(np.prod),
    "simd_max(v)": in_groups(extreme(np.argmax)),
    "simd_min(v)": in_groups(extreme(np.argmin)),
    "simd_prefix_inclusive_sum(v)": in_groups(np.cumsum),
    "simd_prefix_exclusive_sum(v)": in_groups(lambda v: np.cumsum(v) - v),
    "simd_broadcast(v, 5)": in_groups(lambda v: v[5]),
    "simd_broadcast_first(v)": in_groups(lambda v: v[0]),
    "simd_shuffle(v, (lane * 7 + 3) % 16)": in_groups(lambda v: v[(LANE * 7 + 3) % 16]),
    "simd_shuffle_xor(v, 5)": in_groups(lambda v: v[LANE ^ 5]),
    "simd_shuffle_down(v, 3)": in_groups(lambda v: v[np.where(LANE + 3 < 32, LANE + 3, LANE)]),
    "simd_shuffle_up(v, 3)": in_groups(lambda v: v[np.where(LANE >= 3, LANE - 3, LANE)]),
    "simd_shuffle_rotate_down(v, 9)": in_groups(lambda v: v[(LANE + 9) % 32]),
    "simd_shuffle_rotate_up(v, 9)": in_groups(lambda v: v[(LANE - 9) % 32]),
    "simd_shuffle(v, (i * 7 + 3) % 16)": in_groups(lambda v: v[(LANE * 7 + 3) % 16]),
    "simd_prefix_inclusive_product(v)": in_groups(np.cumprod),
    "simd_prefix_exclusive_product(v)": in_groups(lambda v: np.cumprod(v) / v),
    "quad_prefix_inclusive_product(v)": in_groups(np.cumprod, 4),
    "simd_shuffle_and_fill_up(v, v * v, 3)": in_groups(
        lambda v: np.where(LANE >= 3, v[LANE - 3], (v * v)[LANE - 3])
    ),
    "simd_shuffle_and_fill_down(v, v * v, 5)": in_groups(
        lambda v: np.where(LANE < 27, v[(LANE + 5) % 32], (v * v)[(LANE + 5) % 32])
    ),
    "simd_shuffle_and_fill_up(v, v * v, 3, 8)": in_groups(
        lambda v: np.where(LANE[:8] >= 3, v[LANE[:8] - 3], (v * v)[LANE[:8] - 3]), 8
    ),
    "simd_shuffle_and_fill_down(v, 2 * v, 1, 16)": in_groups(
        lambda v: np.where(LANE[:16] < 15, v[(LANE[:16] + 1) % 16], (2 * v)[(LANE[:16] + 1) % 16]),
        16,
    ),
    "quad_shuffle_and_fill_up(v, 3 * v, 1)": in_groups(
        lambda v: np.where(LANE[:4] >= 1, v[LANE[:4] - 1], 3 * v[LANE[:4] - 1]), 4
    ),
    "quad_sum(v)": in_groups(np.sum, 4),
    "quad_max(v)": in_groups(extreme(np.argmax), 4),
    "quad_broadcast(v, 2)": in_groups(lambda v: v[2], 4),
    "quad_shuffle_xor(v, 1)": in_groups(lambda v: v[LANE[:4] ^ 1], 4),
    "quad_shuffle_down(v, 1)": in_groups(lambda v: v[[1, 2, 3, 3]], 4),
    "quad_shuffle(v, (lane % 4 + 1) / 2)": in_groups(lambda v: v[(LANE[:4] + 1) // 2], 4),
}


def check(body, function, x, bound=2e-6):
    source = f"""
    kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]],
                  ushort lane [[thread_index_in_simdgroup]]) {{
      float v = x[i] * x[i], r = 0;
      {body}
      y[i] = r * x[i];
    }}"""
    given = np.random.default_rng(3).normal(size=N)
    arguments = {"x": x, "y": np.zeros(N, np.float32)}
    computed = adjoints(source, "k", arguments, ["x"], ["y"], {"y": given}, threads=N)["x"]
    given = given.astype(np.float32)
    exact = np.empty(N)
    for k in range(N):
        wide = x.astype(np.complex128)
        wide[k] += 1e-30j
        exact[k] = (given * function(wide * wide) * wide).sum().imag / 1e-30
    assert np.abs(computed - exact).max() <= bound * np.abs(exact).max()


def inputs():
    return np.random.default_rng(2).uniform(0.7, 1.3, N).astype(np.float32)


FAST = ("simd_sum(v)", "simd_shuffle_down(v, 3)")


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=() if call in FAST else pytest.mark.slow) for call in CALLS]
)
def test_calls(call):
    check(f"r = {call} + v;", lambda v: CALLS[call](v) + v, inputs())


def test_products_with_zeros():
    x = inputs()
    x[[3, 40, 50]] = 0  # one in the first simdgroup, two in the second
    given = np.random.default_rng(3).normal(size=N).astype(np.float32)
    source = """
    kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
      y[i] = simd_product(x[i]);
    }"""
    arguments = {"x": x, "y": np.zeros(N, np.float32)}
    computed = adjoints(source, "k", arguments, ["x"], ["y"], {"y": given}, threads=N)["x"]
    for k in range(N):
        group = np.delete(np.arange(32) + k // 32 * 32, k % 32)
        exact = given[k // 32 * 32 :][:32].astype(float).sum() * np.prod(x[group].astype(float))
        assert abs(computed[k] - exact) <= 1e-5 * max(1, abs(exact))


@pytest.mark.slow
def test_branches_and_loops_of_different_lengths():
    body = """
    if (lane % 3 == 0) { r = simd_sum(v); } else { r = simd_max(v) * v; }
    for (int j = 0; j < lane / 4; j++) { r += 0.1f * simd_sum(r * v); v = v * 0.9f + 0.01f * r; }"""

    def function(v):
        out = np.empty_like(v)
        for start in range(0, N, 32):
            w, part = v[start : start + 32].copy(), np.empty(32, complex)
            third = LANE % 3 == 0
            part[third] = w[third].sum()
            rest = w[~third]
            part[~third] = rest[np.argmax(rest.real)] * rest
            for j in range(8):
                on = j < LANE // 4
                part[on] += 0.1 * (part[on] * w[on]).sum()
                w[on] = w[on] * 0.9 + 0.01 * part[on]
            out[start : start + 32] = part
        return out

    check(body, function, inputs() * 0.3)
