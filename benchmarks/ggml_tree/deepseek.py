"""DeepSeek: scores that choose keys, and the mixing of parallel residual streams."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff
from scipy.special import softmax

from ggml_tree.operands import TYPES, operand
from ggml_tree.source import run

_INDEXER = re.compile(rf"kernel_lightning_indexer_({TYPES})$")
_WEIGHTS = re.compile(r"kernel_dsv4_hc_comb_f32$")
_BEFORE = re.compile(r"kernel_dsv4_hc_pre_f32$")
_AFTER = re.compile(r"kernel_dsv4_hc_post_f32$")

_U = roundoff(FLOAT)
_STREAMS = 4


def _strides(letter, array):
    """Strides as the structs name them, innermost first: ``nb_x0``."""
    return {f"nb_{letter}{i}": n for i, n in enumerate(reversed(array.strides))}


def check_indexer(source, library, name, rng):
    """``sum over heads of weight relu(q k)``, plus a mask."""
    numbers = {k: source.numbers[f"OP_LIGHTNING_INDEXER_{k}"] for k in ("DK", "NH", "NKPSG")}
    simdgroups, batch = (source.numbers[f"OP_LIGHTNING_INDEXER_{k}"] for k in ("NSG", "NBPTG"))
    width, heads = numbers["DK"], numbers["NH"]
    keys, tokens, streams = 70, 11, 2
    q = operand("f32", (streams, tokens, heads, width), rng, source)
    k = operand(_INDEXER.match(name)[1], (streams, keys, 1, width), rng, source)
    w = rng.normal(size=(streams, 1, tokens, heads)).astype(np.float32)
    mask = rng.integers(-4, 1, (1, 1, tokens, keys)).astype(np.float16)
    out = np.full((streams, 1, tokens, keys), np.nan, np.float32)
    arguments = source.arguments(
        "lightning_indexer", n_kv=keys, n_batch=tokens, mask_ne3=1,
        nb1=out.strides[2], nb3=out.strides[0], nbq1=q.stored.strides[2], nbq2=q.stored.strides[1],
        nbq3=q.stored.strides[0], nbk2=k.stored.strides[1], nbk3=k.stored.strides[0],
        nbw1=w.strides[2], nbw3=w.strides[0], nbm1=mask.strides[2], nbm3=mask.strides[0],
    )  # fmt: skip
    groups = (ceildiv(keys, numbers["NKPSG"] * simdgroups), ceildiv(tokens, batch), streams)
    run(
        library.function(name), (arguments, q.stored, k.stored, w, mask, out), groups,
        (32, simdgroups),
    )  # fmt: skip
    scores = np.einsum("sthd,skd->sthk", q.values, k.values[:, :, 0])
    sizes = np.einsum("sthd,skd->sthk", q.magnitudes, k.magnitudes[:, :, 0])
    weights = w[:, 0].astype(np.float64)
    exact = np.einsum("sthk,sth->stk", np.maximum(scores, 0), weights) + mask[0]
    # Keys are rounded to half.
    error = np.einsum("sthk,sth->stk", sizes, np.abs(weights)) + np.abs(mask[0])
    error = error * ((width + heads + 8) * _U + 1.01 * roundoff(np.float16))
    assert_within(out[:, 0], exact, error)


def check_weights(source, library, name, rng):
    """Sinkhorn's iteration of a 4 x 4 matrix for each token: rows and columns that sum to one."""
    tokens, iterations, eps = 7, 20, float(np.float32(1e-6))
    entries = 2 * _STREAMS + _STREAMS**2
    mixes, base = (rng.normal(size=s).astype(np.float32) for s in ((tokens, entries), entries))
    scale = rng.normal(size=3).astype(np.float32)
    out = np.full((tokens, _STREAMS, _STREAMS), np.nan, np.float32)
    arguments = source.arguments(
        "dsv4_hc_comb", n_tokens=tokens, n_iter=iterations, eps=eps, **_strides("m", mixes),
        **_strides("s", scale), **_strides("b", base), **_strides("d", out),
    )  # fmt: skip
    run(library.function(name), (arguments, mixes, scale, base, out), (2,), (32, 4))
    logits = (mixes.astype(np.float64) * scale[2] + base)[:, 2 * _STREAMS :]
    exact = softmax(logits.reshape(out.shape), -1) + eps
    exact = exact / (exact.sum(1, keepdims=True) + eps)
    for _ in range(iterations - 1):
        exact = exact / (exact.sum(2, keepdims=True) + eps)
        exact = exact / (exact.sum(1, keepdims=True) + eps)
    assert_within(out, exact, 16 * iterations * _U * exact.max())


def _tiles(columns):
    """Threadgroups along the columns, and the threads of each one."""
    tiles = ceildiv(columns, 32)
    return ceildiv(tiles, min(4, tiles)), (32, min(4, tiles))


def check_before(source, library, name, rng):
    """A weighted sum of the streams of each token."""
    for columns, tokens in ((33, 3), (300, 2)):
        x = rng.normal(size=(tokens, _STREAMS, columns)).astype(np.float32)
        weights = rng.normal(size=(tokens, _STREAMS)).astype(np.float32)
        out = np.full((tokens, columns), np.nan, np.float32)
        arguments = source.arguments(
            "dsv4_hc_pre", n_embd=columns, n_tokens=tokens, **_strides("x", x),
            **_strides("w", weights), **_strides("d", out),
        )  # fmt: skip
        groups, threads = _tiles(columns)
        run(library.function(name), (arguments, x, weights, out), (groups, tokens), threads)
        terms = x.astype(np.float64) * weights[..., None]
        assert_within(out, terms.sum(1), 6 * _U * np.abs(terms).sum(1))


def check_after(source, library, name, rng):
    """The streams mixed, plus the layer's result times a weight for each stream."""
    for columns, tokens in ((33, 3), (300, 2)):
        x = rng.normal(size=(tokens, columns)).astype(np.float32)
        streams = rng.normal(size=(tokens, _STREAMS, columns)).astype(np.float32)
        post = rng.normal(size=(tokens, _STREAMS)).astype(np.float32)
        mix = rng.normal(size=(tokens, _STREAMS, _STREAMS)).astype(np.float32)
        out = np.full(streams.shape, np.nan, np.float32)
        arguments = source.arguments(
            "dsv4_hc_post", n_embd=columns, n_tokens=tokens, **_strides("x", x),
            **_strides("r", streams), **_strides("p", post), **_strides("c", mix),
            **_strides("d", out),
        )  # fmt: skip
        groups, threads = _tiles(columns)
        memory = (arguments, x, streams, post, mix, out)
        run(library.function(name), memory, (groups, tokens), threads)
        first = x[:, None].astype(np.float64) * post[..., None]
        terms = streams[:, :, None].astype(np.float64) * mix[..., None]
        exact, size = first + terms.sum(1), np.abs(first) + np.abs(terms).sum(1)
        assert_within(out, exact, 8 * _U * size)


FAMILIES = (
    ("scores of keys", check_indexer, _INDEXER),
    ("weights of streams", check_weights, _WEIGHTS),
    ("sum of streams", check_before, _BEFORE),
    ("mixed streams", check_after, _AFTER),
)
