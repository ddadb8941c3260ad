"""MLX's attention: by tiles, for single queries, and the recurrence of gated delta networks."""

import numpy as np
import pytest
from mlx_headers import driver, kernel
from mlx_tree import attention_vector
from mlx_tree.agreement import BFLOAT, FLOAT, NAMES
from mlx_tree.attention import check_tiled, scene
from mlx_tree.products import assert_rounded, operand, product_error

FLOAT_AND_BFLOAT = pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=NAMES.get)


@pytest.mark.parametrize("causal", [False, True])
@FLOAT_AND_BFLOAT
@pytest.mark.sample(1)
def test_attention_of_single_queries(causal, dtype, rng):
    for keys, queries in ((1, 1), (33, 3), (1000, 1)):
        work = scene(rng, dtype, queries=queries, keys=keys, size=64, causal=causal)
        attention_vector.check_single_pass(
            driver("sdpa_vector"), f"sdpa_vector_{NAMES[dtype]}", work
        )


@pytest.mark.parametrize(
    ("options", "transposed"), [({"mask": bool}, True), ({"mask": FLOAT, "sinks": True}, False)],
    ids=["bool-transposed", "float-sinks"],
)  # fmt: skip
def test_attention_with_a_mask(options, transposed, rng):
    work = scene(rng, FLOAT, queries=2, keys=67, size=64, **options)
    attention_vector.check_single_pass(
        driver("sdpa_vector"), "sdpa_vector_float", work, transposed=transposed
    )


def test_attention_in_two_passes(rng):
    """Blocks of keys first, each with its maximum and sum, which the second pass puts together."""
    library = driver("sdpa_vector")
    work = scene(rng, FLOAT, queries=1, keys=1000, size=64, causal=True)
    parts = attention_vector.run_first_pass(library, "sdpa_vector_2pass_1_float", work, 32)
    out = attention_vector.run_second_pass(library.sdpa_vector_2pass_2_float, *parts)
    exact, error, _ = work.exact()
    assert_rounded(out, exact, error)


@pytest.mark.parametrize(
    ("name", "dtype", "size", "bk", "mask"),
    [("float", FLOAT, 64, 32, FLOAT),
     pytest.param("bfloat", BFLOAT, 128, 16, bool, marks=pytest.mark.slow)],
    ids=["float", "bfloat"],
)  # fmt: skip
def test_attention_by_tiles(name, dtype, size, bk, mask, rng):
    library = driver("steel_attention")
    aligned = scene(rng, dtype, heads=2, queries=32, keys=2 * bk, size=size, causal=True)
    unaligned = scene(rng, dtype, heads=2, queries=37, keys=2 * bk + 3, size=size, mask=mask,
                   sinks=True)  # fmt: skip
    for work in (aligned, unaligned):
        check_tiled(library, f"attention_{name}", work, 32, bk)


def gated_delta(q, k, v, state, g, beta, sign=-1):
    """The recurrence in float64, for (batch, time, heads, size) and a state (batch, heads, v, k)."""
    q, k, v, g, beta = (x.astype(np.float64) for x in (q, k, v, g, beta))
    state, results = state.astype(np.float64), []
    q, k = (np.repeat(x, v.shape[2] // x.shape[2], axis=2) for x in (q, k))
    for t in range(q.shape[1]):
        state = state * g[:, t, :, None, None]
        remembered = np.einsum("bhvk,bhk->bhv", state, k[:, t])
        delta = (v[:, t] + sign * remembered) * beta[:, t, :, None]
        state = state + delta[..., None] * k[:, t, :, None, :]
        results.append(np.einsum("bhvk,bhk->bhv", state, q[:, t]))
    return np.stack(results, axis=1), state


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("seq", FLOAT), ("seq", BFLOAT), ("fused_chunk", FLOAT),
     pytest.param("fused_chunk", BFLOAT, marks=pytest.mark.slow)],
    ids=lambda value: NAMES.get(value, value),
)  # fmt: skip
@pytest.mark.sample(1)
def test_gated_delta_update(form, dtype, rng):
    """One step after the other, or eight of them at once; the last chunk is not full."""
    batch, time, key_heads, heads, size = 2, 11, 2, 4, 64
    q, k = (operand(rng, (batch, time, key_heads, size), np.float64) for _ in range(2))
    q, k = ((x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(dtype) for x in (q, k))
    v = operand(rng, (batch, time, heads, size), dtype)
    state = operand(rng, (batch, heads, size, size), FLOAT)
    g = rng.uniform(0.5, 1, (batch, time, heads)).astype(dtype)
    beta = rng.uniform(0.1, 0.5, (batch, time, heads)).astype(dtype)
    out, state_out = np.full(v.shape, np.nan, dtype), np.full_like(state, np.nan)
    threads = (32, size // 8 if form == "fused_chunk" else size, batch * heads)
    kernel("gated_delta_update", f"gated_delta_{form}_{NAMES[dtype]}", {"save_state": False})(
        q, k, v, state, g, beta, out, state_out, time,
        threads=threads, group_size=(32, 4, 1),
    )  # fmt: skip
    exact, exact_state = gated_delta(q, k, v, state, g, beta)
    # Both forms add up the same products, as expanding the recurrence shows. The sum of their
    # magnitudes is the recurrence with all signs positive.
    magnitudes = (np.abs(x) for x in (q, k, v, state, g, beta))
    magnitude, magnitude_state = gated_delta(*magnitudes, sign=1)
    # A step passes two sums over the keys; the chunk's exponentials err by 130 units each.
    operations = time * (2 * size + 40)
    assert_rounded(out, exact, product_error(magnitude, operations))
    assert_rounded(state_out, exact_state, product_error(magnitude_state, operations))
