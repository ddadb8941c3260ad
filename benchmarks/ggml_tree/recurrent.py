"""Layers with a state: convolutions and scans of Mamba, RWKV 6 and 7, the gated delta rule."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff

from ggml_tree.source import extents, run

_CONVOLUTION = re.compile(r"kernel_ssm_conv_f32_f32(_batched)?(_4)?$")
_SCAN = re.compile(r"kernel_ssm_scan_f32$")
_RWKV6 = re.compile(r"kernel_rwkv_wkv6_f32$")
_RWKV7 = re.compile(r"kernel_rwkv_wkv7_f32$")
_DELTA = re.compile(r"kernel_gated_delta_net_f32_([124])$")

_U = roundoff(FLOAT)


def _normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def check_convolution(source, library, name, rng):
    """A convolution of each channel over time, with as many zeros before it as the host puts."""
    batched, wide = _CONVOLUTION.match(name).groups()
    channels, tokens, sequences, batch = 6, 21, 2, 8
    kernel = library.function(name, {"FC_ssm_conv_bs": batch} if batched else None)
    for width in (4, 8) if wide else (3, 4):
        x = _normal(rng, sequences, channels, tokens + width - 1)
        w = _normal(rng, channels, width)
        out = np.full((sequences, tokens, channels), np.nan, np.float32)
        arguments = source.arguments(
            "ssm_conv", **extents(x, "0"), **extents(w, "1"), **extents(out)
        )
        groups = (channels, ceildiv(tokens, batch) if batched else tokens, sequences)
        run(kernel, (arguments, x, w, out), groups, (batch if batched else 1,))
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), width, -1)
        exact = np.einsum("sctk,ck->stc", windows, w.astype(np.float64))
        size = np.einsum("sctk,ck->stc", np.abs(windows), np.abs(w.astype(np.float64)))
        assert_within(out, exact, (width + 2) * _U * size)


def check_scan(source, library, name, rng):
    """The scan of Mamba-2: a state that decays by ``exp(dt A)`` and takes ``dt B x``."""
    states, inner, heads, groups, tokens, sequences = 64, 5, 4, 2, 7, 2
    kernel = library.function(name)
    for saved_states, rates in ((1, 1), (3, states)):
        initial = _normal(rng, 3, heads, inner, states)
        x, dt = (
            _normal(rng, sequences, tokens, heads, inner),
            _normal(rng, sequences, tokens, heads),
        )
        decay = -rng.uniform(0.1, 1, (heads, rates)).astype(np.float32)
        b, c = (_normal(rng, sequences, tokens, groups, states) for _ in range(2))
        chosen = np.array([2, 0], np.int32)
        snapshot = sequences * heads * inner * states
        out = np.zeros(x.size + saved_states * snapshot, np.float32)
        strides = {
            key: extents(array, digit)[key]
            for array, digit, keys in (
                (initial, "0", "nb00 nb01 nb02 nb03"), (x, "1", "nb10 nb11 nb12 nb13"),
                (dt, "2", "nb20 nb21 nb22"), (b, "4", "nb41 nb42 nb43"),
                (c, "5", "nb51 nb52 nb53"),
            )
            for key in keys.split()
        }  # fmt: skip
        arguments = source.arguments(
            "ssm_scan", d_state=states, d_inner=inner, n_head=heads, n_group=groups,
            n_seq_tokens=tokens, n_seqs=sequences, K=saved_states, s_off=x.nbytes, ne30=rates,
            nb31=decay.strides[0], ns12=heads * inner, ns21=heads, ns42=groups * states,
            ns52=groups * states, nb0=4, **strides,
        )  # fmt: skip
        simdgroups = states // 32
        run(
            kernel, (arguments, initial, x, dt, decay, b, c, chosen, out),
            (inner, heads, sequences), (states,), (32 + 2) * 4 * simdgroups,
        )  # fmt: skip
        wide = [a.astype(np.float64) for a in (initial, x, dt, decay, b, c)]
        y, states_after = _scan(*wide, chosen)
        scale = 200 * _U * max(np.abs(y).max(), np.abs(states_after[-1]).max(), 1)
        assert_within(out[: x.size].reshape(y.shape), y, scale * states)
        saved = out[x.size :].reshape(saved_states, *states_after[-1].shape)
        for slot in range(saved_states):
            assert_within(saved[slot], states_after[-1 - slot], scale)


def _scan(initial, x, dt, decay, b, c, chosen):
    """Results and the states after each token, in float64."""
    groups = x.shape[2] // b.shape[2]
    state, results, after = initial[chosen], [], []
    for t in range(x.shape[1]):
        step = np.logaddexp(0, dt[:, t])[..., None, None]
        b_t, c_t = (a[:, t].repeat(groups, 1)[:, :, None] for a in (b, c))
        state = state * np.exp(step * decay[:, None]) + b_t * (x[:, t][..., None] * step)
        results.append((state * c_t).sum(-1))
        after.append(state)
    return np.stack(results, 1), after


_HEAD, _HEADS, _SEQUENCES, _TOKENS = 64, 2, 2, 3


def _launch_rwkv(library, name, tokens, state):
    """Results by sequence, token and head, and the states."""
    channels = _HEADS * _HEAD
    out = np.full(_SEQUENCES * _TOKENS * channels + state.size, np.nan, np.float32)
    sizes = [np.array([n], np.uint32) for n in (_SEQUENCES, _SEQUENCES * _TOKENS, channels, _HEADS)]
    run(library.function(name), (*tokens, state, out, *sizes), (_SEQUENCES * _HEADS,), (_HEAD,))
    results, states = np.split(out, [out.size - state.size])
    return results.reshape(_SEQUENCES, _TOKENS, _HEADS, _HEAD), states.reshape(state.shape)


def _assert_states(actual, exact, terms):
    """Compare results and states; each is a sum of some `terms` of about the largest size."""
    for got, expected in zip(actual, exact, strict=True):
        assert_within(got, expected, terms * _U * np.abs(expected).max())


def check_rwkv6(source, library, name, rng):
    """``y = r (S + f k v)``, ``S = d S + k v``, head by head (arXiv:2404.05892)."""
    shape = (_SEQUENCES, _TOKENS, _HEADS, _HEAD)
    k, v, r = (_normal(rng, *shape) for _ in range(3))
    decay = rng.uniform(0.2, 1, shape).astype(np.float32)
    first = _normal(rng, _HEADS, _HEAD)
    state = _normal(rng, _SEQUENCES, _HEADS, _HEAD, _HEAD)
    actual = _launch_rwkv(library, name, (k, v, r, first, decay), state)
    s, results = state.astype(np.float64), []
    for t in range(_TOKENS):
        kv = k[:, t, :, :, None].astype(np.float64) * v[:, t, :, None]
        results.append(((s + first[..., None] * kv) * r[:, t, :, :, None]).sum(2))
        s = s * decay[:, t, :, :, None] + kv
    _assert_states(actual, (np.stack(results, 1), s), 8 * _HEAD)


def check_rwkv7(source, library, name, rng):
    """``S = S w + v k + (S a) b``, ``y = S r``, head by head (arXiv:2503.14456)."""
    shape = (_SEQUENCES, _TOKENS, _HEADS, _HEAD)
    r, k, v = (_normal(rng, *shape) for _ in range(3))
    decay = rng.uniform(0.2, 1, shape).astype(np.float32)
    a, b = (_normal(rng, *shape) / 8 for _ in range(2))
    state = _normal(rng, _SEQUENCES, _HEADS, _HEAD, _HEAD)
    actual = _launch_rwkv(library, name, (r, decay, k, v, a, b), state)
    s, results = state.astype(np.float64), []
    for t in range(_TOKENS):
        a_t, b_t, k_t, r_t, decay_t = (x[:, t, :, None] for x in (a, b, k, r, decay))
        inner = (s * a_t).sum(-1, keepdims=True)
        s = s * decay_t + v[:, t, :, :, None].astype(np.float64) * k_t + inner * b_t
        results.append((s * r_t).sum(-1))
    _assert_states(actual, (np.stack(results, 1), s), 32 * _HEAD)


def check_delta(source, library, name, rng):
    """The gated delta rule (arXiv:2412.06464), a gate for each head or for each column."""
    width = 32 * int(_DELTA.match(name)[1])
    heads, shared, tokens, sequences = 4, 2, 5, 2
    for gates, saved_states in ((1, 1), (width, 3)):
        q, k = (_normal(rng, sequences, tokens, shared, width) / width**0.5 for _ in range(2))
        v = _normal(rng, sequences, tokens, heads, width)
        gate = -rng.uniform(0, 1, (sequences, tokens, heads, gates)).astype(np.float32)
        beta = rng.uniform(0, 1, (sequences, tokens, heads)).astype(np.float32)
        state = _normal(rng, sequences, heads, width, width)
        out = np.full(v.size + saved_states * state.size, np.nan, np.float32)
        kernel = library.function(
            name,
            {
                "FC_gated_delta_net_ne20": width,
                "FC_gated_delta_net_ne30": gates,
                "FC_gated_delta_net_K": saved_states,
            },
        )
        sizes = extents(q, "0") | extents(k, "1") | extents(v, "2") | extents(v)
        arguments = source.arguments(
            "gated_delta_net", **sizes, ns02=shared * width, ns12=shared * width,
            ns22=heads * width,
        )  # fmt: skip
        simdgroups = width // 32
        groups = (width // simdgroups, heads, sequences)
        run(kernel, (arguments, q, k, v, gate, beta, state, out), groups, (32, simdgroups))
        s, results, after = state.astype(np.float64), [], []
        for t in range(tokens):
            queries, keys = (np.tile(x[:, t].astype(np.float64), (1, 2, 1)) for x in (q, k))
            s = s * np.exp(gate[:, t].astype(np.float64))[:, :, None]
            change = (v[:, t] - (s * keys[:, :, None]).sum(-1)) * beta[:, t, :, None]
            s = s + change[..., None] * keys[:, :, None]
            results.append((s * queries[:, :, None]).sum(-1) / width**0.5)
            after.append(s)
        y = np.stack(results, 1)
        size = max(np.abs(s).max(), np.abs(v).max())
        assert_within(out[: v.size].reshape(y.shape), y, 8 * width * _U * size)
        saved = out[v.size :].reshape(saved_states, *state.shape)
        for slot in range(saved_states):
            assert_within(saved[slot], after[-1 - slot], 8 * width * _U * size)


FAMILIES = (
    ("convolution of a state", check_convolution, _CONVOLUTION),
    ("scan of a state", check_scan, _SCAN),
    ("RWKV 6", check_rwkv6, _RWKV6),
    ("RWKV 7", check_rwkv7, _RWKV7),
    ("gated delta rule", check_delta, _DELTA),
)
