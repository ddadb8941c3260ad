"""Attention by tiles ("steel"), and what attention of any form must give."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import scipy.special

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides, sum_error
from mlx_tree.element_types import TYPES
from mlx_tree.products import (
    SIMD,
    assert_rounded,
    dispatch,
    operand,
    poisoned,
    structure,
)

_STRIDES = [(f"{tensor}_strides", np.int64, 3) for tensor in "QKVO"]
_PARAMS = np.dtype(
    [(name, np.int32) for name in ("B", "H", "D", "qL", "kL", "gqa_factor")]
    + [("scale", np.float32)]
    + [(name, np.int32) for name in (
        "NQ", "NK", "NQ_aligned", "NK_aligned", "qL_rem", "kL_rem", "qL_off")]
    + _STRIDES, align=True,
)  # fmt: skip
_MASK_PARAMS = np.dtype([("M_strides", np.int64, 3)])


@dataclass(frozen=True)
class Scene:
    """Queries (heads, n, size), and the keys and values of fewer heads; what is added to scores.

    Attributes
    ----------
    mask : numpy.ndarray or None
        (heads, queries, keys): true for keys that count, or numbers to add.
    sinks : numpy.ndarray or None
        (heads,): the score of one more key, whose value is zero.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    causal: bool = False
    mask: np.ndarray | None = None
    sinks: np.ndarray | None = None

    @property
    def group(self) -> int:
        """Query heads that share a head of keys and values."""
        return len(self.q) // len(self.k)

    @property
    def scale(self) -> float:
        """The factor of the scores, as the float that MLX passes."""
        return float(np.float32(self.q.shape[-1] ** -0.5))

    def _added(self, shape) -> np.ndarray:
        """The mask that is added to the scores: minus infinity for keys that do not count."""
        _, queries, keys = shape
        added = np.zeros(shape)
        if self.mask is not None and self.mask.dtype == bool:
            added = np.where(self.mask, added, -np.inf)
        elif self.mask is not None:
            added = self.mask.astype(np.float64)
        late = np.arange(keys)[None, :] > keys - queries + np.arange(queries)[:, None]
        return np.where(late & self.causal, -np.inf, added)

    def exact(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The result, the error that computing it in float may have, and its magnitude."""
        q, k, v = (x.astype(np.float64) for x in (self.q, self.k, self.v))
        k, v = (np.repeat(x, self.group, axis=0) for x in (k, v))
        products = q[:, :, None, :] * k[:, None, :, :] * self.scale
        scores = products.sum(axis=-1)
        added = self._added(scores.shape)
        scores = scores + added
        if self.sinks is not None:
            sinks = np.broadcast_to(self.sinks.astype(np.float64)[:, None, None], (*q.shape[:2], 1))
            weights = scipy.special.softmax(np.concatenate([scores, sinks], axis=-1), axis=-1)
            weights = weights[..., :-1]
        else:
            weights = scipy.special.softmax(scores, axis=-1)
        # A score errs as a sum of `size` products and a scaling; the exponential turns that into a
        # relative error and adds its own (3 + 2|x| ulps), as does each factor exp(old max - new
        # max), whose arguments add up to the spread of the scores at most. Then there are the sums.
        finite = np.isfinite(scores)
        score_error = sum_error(products, q.shape[-1] + 4).max()
        score_error += 4 * 2.0**-24 * np.abs(scores[finite]).max()
        everything = scores[finite] if self.sinks is None else [*scores[finite], *self.sinks]
        spread = np.ptp(np.asarray(everything, np.float64))
        steps = ceildiv(k.shape[1], SIMD) + 2 * (SIMD - 1)
        relative = 2 * score_error + (3 + 4 * spread + 5 * steps) * 2.0**-23
        # The same relative error stands in the numerator and in the denominator.
        magnitude = weights @ np.abs(v)
        return weights @ v, 2 * relative * magnitude, magnitude


def scene(rng, dtype, *, heads=4, group=2, queries, keys, size, value_size=None, causal=False,
          mask=None, sinks=False) -> Scene:  # fmt: skip
    """Random queries, keys and values; `mask` is None, ``bool`` or the type of numbers to add."""
    q = operand(rng, (heads, queries, size), dtype)
    k = operand(rng, (heads // group, keys, size), dtype)
    v = operand(rng, (heads // group, keys, value_size or size), dtype)
    added = None
    if mask is not None:
        allowed = rng.integers(0, 4, (heads, queries, keys)) > 0
        allowed[..., 0] = True
        numbers = operand(rng, allowed.shape, mask if mask is not bool else dtype)
        added = allowed if mask is bool else np.where(allowed, numbers, -np.inf).astype(mask)
    return Scene(q, k, v, causal, added, operand(rng, heads, dtype) if sinks else None)


_NAME = re.compile(
    r"steel_attention_(?:dsplit_)?(?P<dtype>[a-z]+\d+)_bq(?P<bq>\d+)_bk(?P<bk>\d+)_bd(?P<bd>\d+)"
    r"_wm(?P<wm>\d+)_wn(?P<wn>\d+)_mask(?P<mask>\w+)$"
)


def check_tiled(library, name, work: Scene, bq: int, bk: int, simdgroups: int = 4) -> None:
    """One launch of ``attention``, whose tiles are `bq` queries by `bk` keys."""
    (heads, queries, size), keys = work.q.shape, work.k.shape[1]
    out = poisoned(work.q.shape, work.q.dtype)
    constants = {
        "align_Q": queries % bq == 0, "align_K": keys % bk == 0,
        "has_mask": work.mask is not None, "do_causal": work.causal,
        "has_sinks": work.sinks is not None,
    }  # fmt: skip
    strides = {
        f"{tensor}_strides": element_strides(x[None])[:3]
        for tensor, x in zip("QKVO", (work.q, work.k, work.v, out), strict=True)
    }
    params = structure(
        _PARAMS, B=1, H=heads, D=size, qL=queries, kL=keys, gqa_factor=work.group,
        scale=work.scale, NQ=ceildiv(queries, bq), NK=ceildiv(keys, bk), NQ_aligned=queries // bq,
        NK_aligned=keys // bk, qL_rem=queries % bq, kL_rem=keys % bk, qL_off=keys - queries,
        **strides,
    )  # fmt: skip
    added = {}
    if work.mask is not None:
        mask_strides = element_strides(work.mask[None])[:3]
        added |= {"mask": work.mask, "mask_params": structure(_MASK_PARAMS, M_strides=mask_strides)}
    if work.sinks is not None:
        added["sinks"] = work.sinks
    dispatch(
        library.function(name, constants), (ceildiv(queries, bq), heads, 1), (SIMD, simdgroups, 1),
        Q=work.q, K=work.k, V=work.v, O=out, params=params, **added,
    )  # fmt: skip
    exact, error, _ = work.exact()
    assert_rounded(out, exact, error)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _NAME.match(name)
    assert parts, name
    bq, bk, size, wm, wn = (int(parts[key]) for key in ("bq", "bk", "bd", "wm", "wn"))
    dtype = TYPES[parts["dtype"]]
    mask = bool if parts["mask"] == "bool_" else TYPES[parts["mask"]]
    aligned = scene(rng, dtype, heads=2, queries=bq, keys=2 * bk, size=size, causal=True)
    unaligned = scene(rng, dtype, heads=2, queries=bq + 5, keys=2 * bk + 3, size=size, mask=mask,
                   sinks=True)  # fmt: skip
    for work in (aligned, unaligned):
        check_tiled(library, name, work, bq, bk, wm * wn)


FAMILIES = (
    Family("steel attention", ("steel/attn/kernels/steel_attention.metal",), check),
    Family("nax attention", ("steel/attn/kernels/steel_attention_nax.metal",), check),
)
