"""Attention for a few queries: in one pass over the keys, or in blocks that a second pass joins."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, element_strides, roundoff
from mlx_tree.attention import Scene, scene
from mlx_tree.element_types import TYPES
from mlx_tree.products import SIMD, assert_rounded, dispatch, operand, poisoned

_THREADS = 1024


def _constants(work: Scene, transposed: bool) -> dict[str, bool]:
    is_bool = work.mask is not None and work.mask.dtype == bool
    return {
        "has_mask": work.mask is not None, "query_transposed": transposed, "do_causal": work.causal,
        "bool_mask": is_bool, "float_mask": work.mask is not None and not is_bool,
        "has_sinks": work.sinks is not None,
    }  # fmt: skip


def _arguments(work: Scene, transposed: bool) -> dict[str, object]:
    """The arguments of both forms; transposed queries lie as (queries, heads, size)."""
    key_strides, value_strides = element_strides(work.k), element_strides(work.v)
    arguments: dict[str, object] = {
        "queries": np.ascontiguousarray(work.q.swapaxes(0, 1)) if transposed else work.q,
        "keys": work.k, "values": work.v, "N": work.k.shape[1], "k_head_stride": key_strides[0],
        "k_seq_stride": key_strides[1], "v_head_stride": value_strides[0],
        "v_seq_stride": value_strides[1], "scale": work.scale,
    }  # fmt: skip
    if work.mask is not None:
        head, query, key = element_strides(work.mask)
        arguments |= {
            "bmask" if work.mask.dtype == bool else "fmask": work.mask,
            "mask_kv_seq_stride": key, "mask_q_seq_stride": query, "mask_head_stride": head,
        }  # fmt: skip
    if work.sinks is not None:
        arguments["sinks"] = work.sinks
    return arguments


def check_single_pass(library, name, work: Scene, *, transposed=False) -> None:
    heads, queries, _ = work.q.shape
    out = poisoned((heads, queries, work.v.shape[-1]), work.q.dtype)
    sinks = {"num_q_heads": heads} if work.sinks is not None else {}
    dispatch(
        library.function(name, _constants(work, transposed)), (heads, queries, 1), (_THREADS, 1, 1),
        out=out, gqa_factor=work.group, **_arguments(work, transposed), **sinks,
    )  # fmt: skip
    exact, error, _ = work.exact()
    assert_rounded(out, exact, error)


def run_first_pass(library, name, work: Scene, blocks: int, *, transposed=False, grouped=False):
    """Partial results of `blocks` interleaved blocks of keys, their sums and their maxima."""
    heads, queries, _ = work.q.shape
    partial = poisoned((heads, queries, blocks, work.v.shape[-1]), work.q.dtype)
    sums, maxs = poisoned((2, heads, queries, blocks), np.float32)
    constants = {} if grouped else _constants(work, transposed) | {"blocks": blocks}
    dispatch(
        library.function(name, constants), (len(work.k), 1, blocks), (SIMD, work.group, queries),
        out=partial, sums=sums, maxs=maxs, **_arguments(work, transposed),
    )  # fmt: skip
    return partial, sums, maxs


def run_second_pass(kernel, partial, sums, maxs) -> np.ndarray:
    heads, queries, blocks, size = partial.shape
    out = poisoned((heads, queries, size), partial.dtype)
    dispatch(kernel, (heads, queries, 1), (_THREADS, 1, 1), partials=partial, sums=sums, maxs=maxs,
             out=out, blocks=blocks)  # fmt: skip
    return out


def joined(partial, sums, maxs) -> np.ndarray:
    """The result of the second pass, from the first one's."""
    factors = np.exp(maxs.astype(np.float64) - maxs.max(axis=-1, keepdims=True))
    total = (factors[..., None] * partial.astype(np.float64)).sum(axis=-2)
    return total / (factors * sums).sum(axis=-1)[..., None]


def check_first_pass(library, name, work: Scene, blocks: int, **options) -> None:
    parts = run_first_pass(library, name, work, blocks, **options)
    exact, error, magnitude = work.exact()
    # The partial results are rounded to their own type.
    rounding = roundoff(work.q.dtype) * (magnitude + error)
    actual = joined(*parts)
    excess = np.abs(actual - exact) - error - 2 * rounding
    assert np.all(excess <= 0), f"{excess.max():.3g} more than the allowed {error.max():.3g}"


def check_second_pass(kernel, dtype, size: int, rng) -> None:
    heads, queries, blocks = 2, 2, 64
    partial = operand(rng, (heads, queries, blocks, size), dtype)
    sums = rng.uniform(1, 9, (heads, queries, blocks)).astype(np.float32)
    maxs = operand(rng, (heads, queries, blocks), np.float32)
    out = run_second_pass(kernel, partial, sums, maxs)
    magnitude = joined(np.abs(partial.astype(np.float64)), sums, maxs)
    # An exponential errs by 3 + 2|x| ulps; as many additions as blocks, above and below.
    relative = 2 * (3 + 4 * np.ptp(maxs) + blocks + SIMD) * 2.0**-23
    assert_rounded(out, joined(partial, sums, maxs), relative * magnitude)


_NAME = re.compile(
    r"sdpa_vector_(?P<form>2pass_1_gqa_|2pass_1_|2pass_2_|)(?P<dtype>[a-z]\w*?)"
    r"(?:_(?P<qk>\d+))?_(?P<v>\d+)$"
)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _NAME.match(name)
    assert parts, name
    dtype, value_size = TYPES[parts["dtype"]], int(parts["v"])
    if parts["form"] == "2pass_2_":
        check_second_pass(library.function(name), dtype, value_size, rng)
        return
    sizes = {"size": int(parts["qk"]), "value_size": value_size}
    if parts["form"] == "2pass_1_gqa_":
        work = scene(rng, dtype, heads=16, group=8, queries=1, keys=131, **sizes)
        check_first_pass(library, name, work, 2, grouped=True)
        return
    for options, transposed in (
        ({"causal": True, "sinks": True}, True), ({"mask": bool}, False), ({"mask": dtype}, False),
    ):  # fmt: skip
        work = scene(rng, dtype, queries=2, keys=67, **sizes, **options)
        if parts["form"]:
            check_first_pass(library, name, work, 32, transposed=transposed)
        else:
            check_single_pass(library, name, work, transposed=transposed)


FAMILIES = (Family("sdpa vector", ("scaled_dot_product_attention.metal",), check),)
