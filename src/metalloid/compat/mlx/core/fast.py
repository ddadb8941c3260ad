"""``mx.fast``: fused functions, and kernels of the user."""

from __future__ import annotations

from typing import Any, NoReturn

import metalloid as mtl
from metalloid import nn
from metalloid.compat.mlx.core import dtypes, kernels
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import dtype_of
from metalloid.compat.mlx.core.ops.shapes import text
from metalloid.compat.mlx.core.ops.wrapping import as_float, with_stream

metal_kernel = kernels.metal_kernel


def _optional(value: Any) -> mtl.Array | None:
    return None if value is None else operand(value)


def _check_weight(where: str, what: str, weight: mtl.Array | None, size: int) -> None:
    if weight is None:
        return
    if weight.ndim != 1:
        raise ValueError(
            f"[{where}] {what} must have 1 dimension but has {weight.ndim} dimensions."
        )
    if weight.size != size:
        raise ValueError(
            f"[{where}] {what} must have the same size as the last dimension of x but has "
            f"{weight.size} elements."
        )


@with_stream
def rms_norm(x: Any, weight: Any, eps: float) -> array:
    """Rows divided by the root of their mean square, times a weight."""
    a, w = as_float(operand(x)), _optional(weight)
    if not a.ndim:
        raise ValueError("[rms_norm] Input must have at least 1 dimension but got input with 0.")
    _check_weight("rms_norm", "(*weight)", w, a.shape[-1])
    return wrap(nn.rms_norm(a, w, eps))


@with_stream
def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> array:
    """Rows with mean 0 and variance 1, times a weight, plus a bias."""
    a, w, b = as_float(operand(x)), _optional(weight), _optional(bias)
    if not a.ndim:
        raise ValueError("[layer_norm] Input must have at least 1 dimension but got input with 0.")
    _check_weight("layer_norm", "weight", w, a.shape[-1])
    _check_weight("layer_norm", "bias", b, a.shape[-1])
    return wrap(nn.layer_norm(a, w, b, eps))


@with_stream
def cross_entropy(logits: Any, targets: Any) -> array:
    """Negative logarithms of the probabilities of targets."""
    return wrap(nn.cross_entropy(operand(logits), operand(targets)))


@with_stream
def rope(a: Any, dims: int, *, traditional: bool, base: float | None, scale: float, offset: Any,
         freqs: Any = None) -> array:  # fmt: skip
    """Rotary positions."""
    x = operand(a)
    if x.ndim < 3:
        raise ValueError(f"[rope] Input must have at least 3 dimensions but got {x.ndim}.")
    if not dtypes.is_float(dtype_of(x.dtype)):
        raise ValueError(f"[rope] Input must be a floating type but got {x.dtype.name}.")
    own = _optional(freqs)
    if own is not None and own.ndim != 1:
        raise ValueError(f"[rope] freqs must have one dimension but got {own.ndim}.")
    if own is not None and own.shape[0] != dims // 2:
        raise ValueError(
            f"[rope] freqs must be one dimensional with size {dims // 2} but got shape "
            f"{text(own.shape)}."
        )
    if (base is None) == (own is None):
        raise ValueError("[rope] Only one of base or freqs can have a value.")
    position = operand(offset) if isinstance(offset, array) else int(offset)
    if isinstance(position, mtl.Array):
        if position.dtype.kind not in "iu":
            raise ValueError(f"[rope] offset must be an integer but got {position.dtype.name}.")
        if position.size not in (1, x.shape[0]):
            raise ValueError(
                f"[rope] offset must be a scalar or vector with {x.shape[0]} elements but has "
                f"shape {text(position.shape)}."
            )
    result = nn.rope(x, dims, traditional=traditional, base=base, scale=scale, offset=position,
                     freqs=own)  # fmt: skip
    return wrap(result)


@with_stream
def scaled_dot_product_attention(q: Any, k: Any, v: Any, *, scale: float, mask: Any = None,
                                 sinks: Any = None,
                                 force_fused: bool = False) -> array:  # fmt: skip
    """Attention: ``softmax(scale * q @ k.T + mask) @ v``."""
    queries, keys, values = operand(q), operand(k), operand(v)
    for name, x in (("query", queries), ("key", keys), ("value", values)):
        if x.ndim != 4:
            raise ValueError(
                f"[scaled_dot_product_attention] {name} with shape {text(x.shape)} expected to be "
                "rank 4."
            )
    dtype = dtypes.result_type(*(dtype_of(x.dtype) for x in (queries, keys, values)))
    if not dtypes.is_float(dtype):
        raise ValueError(f"[scaled_dot_product_attention] Received unsupported type {dtype._name}.")
    if queries.shape[0] != keys.shape[0] or keys.shape[0] != values.shape[0]:
        raise ValueError("[scaled_dot_product_attention] mismatching batch dimension.")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            "[scaled_dot_product_attention] query, keys expected to have matching last dimension; "
            f"found query shape {text(queries.shape)} for keys shape {text(keys.shape)}."
        )
    if keys.shape[-3] != values.shape[-3] or queries.shape[-3] % keys.shape[-3]:
        raise ValueError(
            "[scaled_dot_product_attention] n_heads must be a multiple of n_kv_heads, found "
            f"n_heads {queries.shape[-3]} for n_kv_heads {keys.shape[-3]}."
        )
    if isinstance(mask, str) and mask not in ("", "causal"):
        raise ValueError(
            "[scaled_dot_product_attention] Invalid mask option. The only allowed string is "
            f"'causal', got {mask!r}."
        )
    if sinks is not None and operand(sinks).shape != (queries.shape[1],):
        raise ValueError(
            "[scaled_dot_product_attention] Received invalid shape for sinks "
            f"{text(operand(sinks).shape)}."
        )
    if sinks is not None and dtypes.promoted(dtype_of(operand(sinks).dtype), dtype) is not dtype:
        raise ValueError(
            "[scaled_dot_product_attention] Type of sinks must promote to output type "
            f"{dtype._name}."
        )
    given: Any = mask or None if isinstance(mask, str) else _optional(mask)
    if isinstance(given, mtl.Array):
        if given.ndim > 4:
            raise ValueError(
                "[scaled_dot_product_attention] the mask with shape "
                f"{text(given.shape)} expected to have at most rank 4."
            )
        if given.dtype.kind != "b":
            own = dtype_of(given.dtype)
            if dtypes.promoted(own, dtype) is not dtype:
                raise ValueError(
                    "[scaled_dot_product_attention] Mask type must promote to output type "
                    f"{dtype._name}."
                )
            given = given.astype(dtype.numpy)
    parts = (x.astype(dtype.numpy) for x in (queries, keys, values))
    result = nn.scaled_dot_product_attention(*parts, scale=scale, mask=given,
                                             sinks=_optional(sinks))  # fmt: skip
    return wrap(result)


@with_stream
def gated_delta_update(q: Any, k: Any, v: Any, gamma: Any, beta: Any, initial_state: Any = None,
                       mask: Any = None) -> Any:  # fmt: skip
    """The gated delta rule; see MLX."""
    raise NotImplementedError("[gated_delta_update] metalloid has no kernel for it yet.")


def cuda_kernel(*args: Any, **named: Any) -> NoReturn:
    """CUDA kernels cannot run: the kernels of metalloid are written in Metal."""
    raise RuntimeError("[cuda_kernel] No CUDA back-end: write the kernel in Metal.")


def precompiled_cuda_kernel(*args: Any, **named: Any) -> NoReturn:
    """CUDA kernels cannot run: the kernels of metalloid are written in Metal."""
    raise RuntimeError("[precompiled_cuda_kernel] No CUDA back-end: write the kernel in Metal.")
