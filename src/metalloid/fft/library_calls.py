"""Nodes that call the vendor library's Fourier transforms.

The library transforms along up to three last axes at a time. Generated kernels move other axes
there, truncate and pad them. Transforms of or to real numbers use the last axis.
"""

from __future__ import annotations

import math

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import launch_call
from metalloid.arrays.functions.elementwise import conj
from metalloid.arrays.interop.dlpack import owned_copy
from metalloid.arrays.ir.dtypes import DType, complex_of, kind_of, real_of
from metalloid.arrays.ir.layout import Ints, contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node, broadcast, cast, constant, fresh
from metalloid.arrays.ir.views import full_slices, joined, moved_axes, sliced
from metalloid.arrays.planning.kernel_builder import plain
from metalloid.runtime.devices.libraries import Signal
from metalloid.runtime.memory.buffer import Buffer

_MAX_AXES = 3
#: Alignment that the library requires.
_ALIGNMENT = 16


def library_transform(name: str, node: Node, lengths: Ints, axes: Ints, norm: str) -> Node:
    """Transform like NumPy's function of that name."""
    kind = name.rstrip("n2")
    if kind in ("hfft", "ihfft"):  # inverse transforms of the conjugate, or their conjugate
        norm = {"backward": "forward", "forward": "backward"}.get(norm, norm)
        if kind == "hfft":
            node = conj(Array(node))._node
    is_inverse = kind in ("ifft", "irfft", "hfft")
    if kind in ("irfft", "hfft"):
        result = _to_reals(node, lengths, axes)
    elif kind in ("rfft", "ihfft"):
        result = _from_reals(node, lengths, axes)
    else:
        wide = cast(node, complex_of(real_of(node.dtype)))
        result = _along(fitted(wide, lengths, axes), axes, is_inverse)
    if kind == "ihfft":
        result = conj(Array(result))._node
    return _scaled(result, math.prod(lengths), norm, is_inverse)


def _from_reals(node: Node, lengths: Ints, axes: Ints) -> Node:
    node = fitted(node, lengths, axes)
    half = lengths[-1] // 2 + 1
    return _along(_last(node, axes[-1:], complex_of(node.dtype), half), axes[:-1], False)


def _to_reals(node: Node, lengths: Ints, axes: Ints) -> Node:
    wide = cast(node, complex_of(real_of(node.dtype)))
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    node = _along(fitted(wide, half, axes), axes[:-1], True)
    return _last(node, axes[-1:], real_of(node.dtype), lengths[-1], True)


def _along(node: Node, axes: Ints, is_inverse: bool) -> Node:
    """Transform complex numbers along any axes."""
    while axes:
        axes, some = axes[:-_MAX_AXES], axes[-_MAX_AXES:]
        node = _last(node, some, node.dtype, node.shape[some[-1]], is_inverse)
    return node


def _last(node: Node, axes: Ints, dtype: DType, extent: int, is_inverse: bool = False) -> Node:
    """Transform along up to three axes; the last axis gets the given extent."""
    last_axes = tuple(range(-len(axes), 0))
    start = moved_axes(node, axes, last_axes)
    length = start.shape[-1] if kind_of(dtype) == "c" else extent
    lengths = (*start.shape[-len(axes) : -1], length)
    shape = (*start.shape[:-1], extent)
    (result,) = launch_call(
        _transform, [start], (lengths, dtype, shape, is_inverse), (dtype, shape)
    )
    return moved_axes(result, last_axes, axes)


def fitted(node: Node, lengths: Ints, axes: Ints) -> Node:
    """Truncate axes, or pad them with zeros."""
    shape = list(node.shape)
    for axis, length in zip(axes, lengths, strict=True):
        shape[axis] = length
    slices = [(0, 1, min(n, extent)) for n, extent in zip(node.shape, shape, strict=True)]
    cut = sliced(node, slices)
    if cut.shape == tuple(shape):
        return cut
    zeros = broadcast(constant(0, node.dtype, node.device), tuple(shape))
    return joined([zeros, cut], [full_slices(tuple(shape)), slices], tuple(shape), node.dtype)


def _scaled(node: Node, count: int, norm: str, is_inverse: bool) -> Node:
    """Normalise: divide by nothing, by the count, or by its square root."""
    if norm == "ortho":
        return (Array(node) * (1 / math.sqrt(count)))._node
    is_divided = is_inverse == (norm == "backward")
    return (Array(node) * (1 / count))._node if is_divided else node


# -- the call, on an evaluated operand


def _transform(a: Node, lengths: Ints, dtype: DType, shape: Ints, is_inverse: bool) -> list[Memory]:
    result = fresh(dtype, shape, a.device)
    is_overwritten = kind_of(dtype) != "c"
    if is_overwritten or not _is_dense(a):
        a = owned_copy(a)
    fourier = a.device.libraries.fourier
    assert fourier is not None
    fourier.transform(
        _signal(a), _signal(result), lengths, math.prod(shape[: -len(lengths)]), is_inverse
    )
    assert result.memory is not None
    return [result.memory]


def _is_dense(a: Node) -> bool:
    """Whether elements are contiguous in a buffer, with the required alignment."""
    assert a.memory is not None
    is_buffer = isinstance(a.memory.bound, Buffer)
    is_aligned = (a.memory.address + a.layout.offset * a.dtype.itemsize) % _ALIGNMENT == 0
    return is_buffer and is_aligned and plain(a.layout) == plain(contiguous(a.shape))


def _signal(a: Node) -> Signal:
    assert a.memory is not None
    return Signal(a.memory.bound, a.layout.offset * a.dtype.itemsize, a.dtype.name)
