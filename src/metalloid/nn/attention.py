"""Scaled dot product attention: one kernel, which never stores the matrix of scores.

Its derivatives are those of the composition, which stores it.
"""

from __future__ import annotations

import functools
import struct
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions.elementwise import exp, maximum
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import broadcast_to, reshape
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import DType, bool_, int32, msl_name, promote
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import TRACED, VIEW, Node
from metalloid.arrays.ir.operands import as_number
from metalloid.arrays.ir.primitives import Implementation
from metalloid.arrays.library.slice_updates import is_slice_update
from metalloid.kernels.strides import row_major
from metalloid.nn.primitives import as_float, call, computed_type, define_composition
from metalloid.transforms.rules.control import stopped

_LANES = 32
#: Maximum number of features: lanes have up to this many in registers.
_MAX_FEATURES = 256
#: Queries of a simdgroup, and simdgroups that share the keys on SIMT devices.
_ROWS, _SIMDGROUPS = 4, 8
#: Up to so many queries of a head have a threadgroup each there, of so many simdgroups.
_FEW_QUERIES, _SIMDGROUPS_OF_QUERY = 4, 16
#: Elements of a mask are numbered by 32-bit integers.
_MAX_ELEMENTS = 2**31 - 1


class Options(NamedTuple):
    """Parameters of the primitive.

    Attributes
    ----------
    scale : float
    is_causal, has_mask, has_sinks : bool
    has_count : bool
        Whether only the first keys are keys: as many as the last operand, a constant, says.
    """

    scale: float
    is_causal: bool
    has_mask: bool
    has_sinks: bool
    has_count: bool = False


def scaled_dot_product_attention(q: Any, k: Any, v: Any, *, scale: float, mask: Any = None,
                                 sinks: Any = None) -> Array:  # fmt: skip
    """Return ``softmax(scale * q @ k.mT + mask) @ v``.

    Parameters
    ----------
    q : Array of shape (batch, heads, queries, features)
    k, v : Array of shape (batch, heads of keys, keys, features)
        A head of keys and values serves as many consecutive heads of queries as there are.
    scale : float
    mask : Array, "causal" or None
        Booleans tell which keys a query meets; numbers are added to scores. Shapes broadcast to
        (batch, heads, queries, keys). "causal": the last query meets all keys, the one before it
        all but the last.
    sinks : Array of shape (heads,), optional
        A score of each head that takes part in the softmax without a value.

    Returns
    -------
    Array of shape (batch, heads, queries, features of values)

    Raises
    ------
    ValueError
        If the shapes are incompatible.

    References
    ----------
    T. Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    2022.

    Examples
    --------
    >>> import metalloid as mtl
    >>> q, k = mtl.zeros((1, 1, 1, 8)), mtl.zeros((1, 1, 2, 8))
    >>> v = mtl.asarray([2.0, 4.0]).reshape(1, 1, 2, 1)
    >>> mtl.nn.scaled_dot_product_attention(q, k, v, scale=1.0).flatten()
    array([3.], dtype=float32)
    """
    name = "scaled_dot_product_attention"
    q, k, v = (as_float(name, x) for x in (q, k, v))
    _check(name, q, k, v)
    dtype = functools.reduce(promote, (q.dtype, k.dtype, v.dtype))
    operands = [x.astype(dtype) for x in (q, k, v)]
    is_causal = isinstance(mask, str)
    if is_causal and mask != "causal":
        raise ValueError(f"[{name}] mask must be 'causal' or an array, got {mask!r}.")
    if mask is not None and not is_causal:
        operands.append(_mask(name, as_array(mask, name, q.device), dtype, q, k))
    if sinks is not None:
        row = as_float(name, sinks)
        if row.shape != q.shape[1:2]:
            raise ValueError(f"[{name}] sinks must have shape {q.shape[1:2]}, got {row.shape}.")
        operands.append(row.astype(computed_type(dtype)))
    options = Options(
        float(scale), is_causal, mask is not None and not is_causal, sinks is not None
    )
    prefix = _prefix(operands, options)
    if prefix is not None:
        operands, options = prefix, options._replace(has_count=True)
    return call(f"nn.{name}", operands, (options,), dtype, (*q.shape[:3], v.shape[-1]))


def _check(name: str, q: Array, k: Array, v: Array) -> None:
    shapes = f"got q {q.shape}, k {k.shape} and v {v.shape}."
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(
            f"[{name}] expected four axes (batch, heads, positions, features), {shapes}"
        )
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ValueError(f"[{name}] batches, keys or features differ, {shapes}")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ValueError(f"[{name}] heads of q must be a multiple of those of k, {shapes}")


def _prefix(operands: list[Array], options: Options) -> list[Array] | None:
    """The operands for keys and values that are the first rows of arrays with pending writes.

    Their number is another operand, so that a cache that grows has one plan. None for others.
    """
    k, v = operands[1:3]
    keys, values = (_written(x._node) for x in (k, v))
    if keys is None or values is None or any(x._node.flags & TRACED for x in operands):
        return None
    if keys.shape[2] != values.shape[2] or not k.shape[2]:
        return None
    replaced = [operands[0], Array(keys), Array(values), *operands[3:]]
    if not _has_kernel(*(x._node for x in replaced), options):
        return None
    return [*replaced, Array(as_number(k.shape[2], int32, k.device))]


def _written(node: Node) -> Node | None:
    """The array with a pending write of whose rows of features these are the first ones."""
    if node.kind is VIEW and node.data.kind == "slice" and is_slice_update(node.args[0]):
        (base,) = node.args
        extents = (*base.shape[:2], node.shape[2], base.shape[3])
        if node.data.numbers == tuple(chain.from_iterable((0, 1, n) for n in extents)):
            return base
    return node if is_slice_update(node) else None


def _mask(name: str, mask: Array, dtype: DType, q: Array, k: Array) -> Array:
    """A mask of four axes, each of which has the extent of the scores or 1."""
    shape = (*q.shape[:3], k.shape[2])
    if mask.dtype != bool_ and promote(mask.dtype, dtype) != dtype:
        raise ValueError(f"[{name}] a mask of {mask.dtype} does not promote to {dtype}.")
    padded = (1,) * (4 - mask.ndim) + mask.shape
    pairs = zip(padded, shape, strict=False)
    if len(padded) != 4 or any(own not in (1, extent) for own, extent in pairs):
        raise ValueError(f"[{name}] a mask of shape {mask.shape} does not broadcast to {shape}.")
    return reshape(mask if mask.dtype == bool_ else mask.astype(dtype), padded)


def _split(operands: Any) -> tuple[Any, Any, Any, Any, Any, Options]:
    """Queries, keys, values, mask, sinks and options."""
    q, k, v, *optional, options = operands
    if options.has_count:
        optional = optional[:-1]
    mask = optional[0] if options.has_mask else None
    return q, k, v, mask, optional[-1] if options.has_sinks else None, options


def _attention(*operands: Any) -> Array:
    q, k, v, mask, sinks, options = _split(operands)
    dtype = computed_type(q.dtype)
    batch, heads, queries, depth = q.shape
    heads_of_keys, keys = k.shape[1:3]
    repeats = heads // heads_of_keys
    grouped = reshape(q.astype(dtype) * options.scale, (batch, heads_of_keys, -1, depth))
    scores = reshape(grouped @ k.astype(dtype).mT, (batch, heads, queries, keys))
    lowest = float(np.finfo(np.float32).min)
    if options.is_causal:
        last = arange(queries, device=q.device)[:, None] + (keys - queries)
        scores = where(arange(keys, device=q.device) <= last, scores, lowest)
    elif mask is not None:
        scores = where(mask, scores, lowest) if mask.dtype == bool_ else scores + mask.astype(dtype)
    largest = scores.max(-1, keepdims=True)
    if sinks is not None:
        sink = broadcast_to(reshape(sinks.astype(dtype), (-1, 1, 1)), largest.shape)
        largest = maximum(largest, sink)
    shift = Array(stopped(largest._node))
    weights = exp(scores - shift)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + exp(sink - shift)
    rows = reshape(weights / total, (batch, heads_of_keys, repeats * queries, keys))
    result = rows @ v.astype(dtype)
    return reshape(result.astype(q.dtype), (batch, heads, queries, v.shape[-1]))


def _has_kernel(*operands: Any) -> bool:
    q, k, v, *_ = operands
    features = max(q.shape[-1], v.shape[-1])
    has_elements = q.size > 0 and k.size > 0 and all(x.size <= _MAX_ELEMENTS for x in operands[:-1])
    return 0 < features <= _MAX_FEATURES and q.dtype.itemsize <= 4 and has_elements


def _by_kernel(*operands: Any) -> Node:
    q, k, v, mask, _, options = _split(operands)
    strides: Ints = (0, 0, 0, 0)
    if mask is not None:
        pairs = zip(mask.shape, row_major(mask.shape), strict=True)
        strides = tuple(0 if extent == 1 else stride for extent, stride in pairs)
    mask_dtype = None if mask is None else mask.dtype
    shapes = q.shape, k.shape, v.shape
    launch = _launch(q.dtype, shapes, mask_dtype, strides, options, q.device.traits.is_simt)
    nodes = list(operands[:-1])
    return library_call(launch, nodes, q.dtype, (*q.shape[:3], v.shape[-1]))


@functools.lru_cache(maxsize=1024)
def _launch(dtype: DType, shapes: tuple[Ints, Ints, Ints], mask_dtype: DType | None, strides: Ints,
            options: Options, is_simt: bool) -> LibraryCall:  # fmt: skip
    (batch, heads, queries, depth), (_, heads_of_keys, keys, _), (*_, width) = shapes
    repeats = heads // heads_of_keys
    is_single = is_simt and queries <= _FEW_QUERIES
    rows = 1 if is_single else min(_ROWS, repeats * queries)
    simdgroups = _SIMDGROUPS_OF_QUERY if is_single else _SIMDGROUPS if is_simt else 1
    chunks, columns = -(-depth // _LANES), -(-width // _LANES)
    if mask_dtype is None:
        mask = "nn::NoMask()"
    elif mask_dtype == bool_:
        mask = "nn::Selection{(device const bool *)x3}"
    else:
        mask = f"nn::Summand<{msl_name(mask_dtype)}>{{x3}}"
    last = 2 + options.has_mask + options.has_sinks
    count = 1 + last + options.has_count
    sinks = f"x{last}" if options.has_sinks else "(device const float *)0"
    is_full = depth % _LANES == width % _LANES == 0
    each = is_full, options.is_causal, options.has_sinks
    flags = ", ".join(str(flag).lower() for flag in each)
    sizes = {
        "heads": heads, "repeats": repeats, "queries": queries, "keys": keys, "depth": depth,
        "width": width, "batch_stride": strides[0], "head_stride": strides[1],
        "query_stride": strides[2], "key_stride": strides[3],
    }  # fmt: skip
    values = [f"params.{name}" for name in sizes]
    values.insert(3, f"uint(x{last + 1}[0])" if options.has_count else values[3])
    (scale_bits,) = struct.unpack("I", struct.pack("f", options.scale))
    function = "attend_one<" if is_single else f"attend<{rows}, "
    body = (
        f"threadgroup float shared[{simdgroups * (columns * _LANES + 2) if is_simt else 1}];\n"
        f"const nn::Extents size{{{', '.join(values[:7])},\n"
        f"    uint4({', '.join(values[7:])}), as_type<float>(params.scale)}};\n"
        f"nn::{function}{chunks}, {columns}, {simdgroups}, {flags}>(\n"
        f"    x0, x1, x2, {mask}, {sinks}, out, size, shared, group, simdgroup, lane);"
    )
    launch = LibraryLaunch(
        name="attention",
        body=body,
        files=("nn/lanes", "nn/attention", *(["nn/attention_simt"] if is_single else [])),
        reads=tuple(range(count)),
        writes=(count,),
        numbers=(*sizes.items(), ("scale", scale_bits)),
        threads=(-(-repeats * queries // rows) * _LANES * simdgroups, batch * heads_of_keys, 1),
        group_size=(_LANES * simdgroups, 1, 1),
    )
    return LibraryCall((launch,))


define_composition(
    "nn.scaled_dot_product_attention",
    _attention,
    Implementation(_by_kernel, _has_kernel),
    is_stackable=False,
)
