"""Fourier transforms along one or several axes.

On the CPU they are kernels of this package for lengths of 32 times factors 2, 3 and 5 (of real
numbers 64 times), and NumPy's pocketfft for others; on other devices kernels of this package, or
cuFFT if it is installed. float32 and complex64 use single precision, float64 and complex128 double
precision. Half floats and integers are converted to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import host_call, launch_call
from metalloid.arrays.ir.dtypes import DType, complex_of, default_float, float32, kind_of, real_of
from metalloid.arrays.ir.layout import Ints, is_contiguous
from metalloid.arrays.ir.node import BUFFER, VIEW, Node, cast, permute
from metalloid.arrays.ir.operands import axes_of, to_node
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.fft import passes
from metalloid.fft.kernels import Transform, transformed_rows
from metalloid.fft.library_calls import fitted, library_transform
from metalloid.fft.row_passes import has_passes, transform_rows
from metalloid.settings import settings

Norm = Literal["backward", "ortho", "forward"]
#: Larger views are not copied, but read where they are by launches that a function makes.
_MAX_COPIED_BYTES = 2**24
#: From so many elements on, a call of a library takes less time than kernels of the plan.
_ENOUGH_FOR_LIBRARY = 2**19


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    r"""Return the discrete Fourier transform along an axis.

    .. math:: X_k = \sum_{j=0}^{n-1} x_j \, e^{-2 \pi i j k / n}

    Parameters
    ----------
    x : Array
    n : int, optional
        Length of the transform: the axis is truncated or padded with zeros. By default its extent.
    axis : int
    norm : "backward", "ortho" or "forward"
        Normalisation: divide the inverse transform by `n`, both by its square root, or this one.

    Returns
    -------
    Array
        Complex numbers.

    Raises
    ------
    ValueError
        If the length is less than 1.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.fft(mtl.asarray([1.0, 0.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along_axis("fft", x, n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `fft`, with the same parameters."""
    return _along_axis("ifft", x, n, axis, norm)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the transform of real numbers: the first ``n // 2 + 1`` results of `fft`.

    The others are the complex conjugates of these.

    Raises
    ------
    TypeError
        If `x` is complex.
    """
    return _along_axis("rfft", x, n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `rfft`.

    Parameters
    ----------
    n : int, optional
        Length of the result. By default ``2 * (m - 1)`` for an axis of extent `m`, so it must be
        given for odd lengths.
    """
    return _along_axis("irfft", x, n, axis, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the transform of a signal with Hermitian symmetry; `x` is its first half.

    Parameters
    ----------
    n : int, optional
        Length of the result, which is real. By default ``2 * (m - 1)``, as in `irfft`.
    """
    return _along_axis("hfft", x, n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `hfft`: the first half, ``n // 2 + 1`` numbers.

    Raises
    ------
    TypeError
        If `x` is complex.
    """
    return _along_axis("ihfft", x, n, axis, norm)


def fftn(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: Norm = "backward") -> Array:  # fmt: skip
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    s : sequence of int, optional
        Length along each of the axes, as `n` of `fft`; -1 stands for the extent of the axis.
    axes : sequence of int, optional
        All axes by default, or the last ``len(s)``.
    norm : "backward", "ortho" or "forward"

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.fftn(mtl.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_axes("fftn", x, s, axes, norm)


def ifftn(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: Norm = "backward") -> Array:  # fmt: skip
    """Return the inverse of `fftn`, with the same parameters."""
    return _along_axes("ifftn", x, s, axes, norm)


def rfftn(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: Norm = "backward") -> Array:  # fmt: skip
    """Return the transform of real numbers: `rfft` along the last axis, `fft` along the others."""
    return _along_axes("rfftn", x, s, axes, norm)


def irfftn(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: Norm = "backward") -> Array:  # fmt: skip
    """Return the inverse of `rfftn`; `s` is the shape of the result, as `n` of `irfft`."""
    return _along_axes("irfftn", x, s, axes, norm)


def fft2(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: Norm = "backward") -> Array:  # fmt: skip
    """Return `fftn` along two axes, by default the last ones.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.fft.fft2(mtl.ones((3, 2, 2)))[0]
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_axes("fft2", x, s, axes, norm)


def ifft2(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: Norm = "backward") -> Array:  # fmt: skip
    """Return `ifftn` along two axes: the inverse of `fft2`."""
    return _along_axes("ifft2", x, s, axes, norm)


def rfft2(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: Norm = "backward") -> Array:  # fmt: skip
    """Return `rfftn` along two axes."""
    return _along_axes("rfft2", x, s, axes, norm)


def irfft2(x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: Norm = "backward") -> Array:  # fmt: skip
    """Return `irfftn` along two axes: the inverse of `rfft2`."""
    return _along_axes("irfft2", x, s, axes, norm)


_SINGLE_AXIS = frozenset({"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"})
OF_REALS = frozenset({"rfft", "rfft2", "rfftn", "ihfft"})
TO_REALS = frozenset({"irfft", "irfft2", "irfftn", "hfft"})


def _along_axis(name: str, x: Any, n: int | None, axis: int, norm: Norm) -> Array:
    node = _operand(name, x)
    (along,) = axes_of(name, axis, len(node.shape))
    lengths = _lengths(name, node.shape, (n,), (along,))
    return _transformed(name, node, lengths, (along,), norm)


def _along_axes(name: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None,
                norm: Norm) -> Array:  # fmt: skip
    node = _operand(name, x)
    if axes is None and s is not None:
        axes = range(-len(s), 0)
    along = axes_of(name, axes, len(node.shape))
    requested = (None,) * len(along) if s is None else tuple(None if n == -1 else n for n in s)
    if len(requested) != len(along):
        raise ValueError(f"[{name}] got {len(requested)} lengths {s} for {len(along)} axes {axes}.")
    if not along:
        raise ValueError(f"[{name}] there is no axis to transform in shape {node.shape}.")
    lengths = _lengths(name, node.shape, requested, along)
    return _transformed(name, node, lengths, along, norm)


def _operand(name: str, x: Any) -> Node:
    """Convert to a type of single or double precision."""
    node = to_node(x, name)
    if name in OF_REALS and kind_of(node.dtype) == "c":
        raise TypeError(f"[{name}] expected real numbers, got {node.dtype}. Use fft, fftn or ifft.")
    if kind_of(node.dtype) not in "fc":
        return cast(node, default_float())
    return cast(node, float32) if node.dtype.itemsize == 2 else node


def _lengths(name: str, shape: Ints, requested: Sequence[int | None], axes: Ints) -> Ints:
    """Return the lengths of the transform along its axes."""
    lengths = [shape[k] if n is None else n for n, k in zip(requested, axes, strict=True)]
    if name in TO_REALS and requested[-1] is None:
        lengths[-1] = 2 * (shape[axes[-1]] - 1)
    if any(n < 1 for n in lengths):
        raise ValueError(
            f"[{name}] lengths must be at least 1, got {min(lengths)} along the axes {axes} of "
            f"shape {shape}."
        )
    return tuple(lengths)


def _transformed(name: str, node: Node, lengths: Ints, axes: Ints, norm: Norm) -> Array:
    if norm not in get_args(Norm):
        raise ValueError(f"[{name}] norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    # The settings are those of the time at which the transform is written.
    return Array(transform(node, name, lengths, axes, norm, settings.transforms))


def transform(node: Node, name: str, lengths: Ints, axes: Ints, norm: str, backend: str) -> Node:
    """Node of a transform with validated parameters."""
    result = transform_type(node, name, lengths, axes)
    return bind("fft", [node], (name, lengths, axes, norm, backend), result)[0]


def transform_type(node: Node, name: str, lengths: Ints, axes: Ints) -> tuple[DType, Ints]:
    """Type and shape of the result of a transform."""
    shape = list(node.shape)
    for axis, length in zip(axes, lengths, strict=True):
        shape[axis] = length
    if name in OF_REALS:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    real = real_of(node.dtype)
    return real if name in TO_REALS else complex_of(real), tuple(shape)


def _is_for_library(node: Node, name: str, lengths: Ints, axes: Ints, norm: str,
                    backend: str) -> bool:  # fmt: skip
    is_requested = backend == "cufft" or (backend == "auto" and node.size >= _ENOUGH_FOR_LIBRARY)
    return is_requested and 0 not in node.shape and node.device.libraries.fourier is not None


def _by_library(node: Node, name: str, lengths: Ints, axes: Ints, norm: str, backend: str) -> Node:
    return library_transform(name, node, lengths, axes, norm)


def _is_by_kernels(node: Node, name: str, lengths: Ints, axes: Ints, norm: str,
                   backend: str) -> bool:  # fmt: skip
    """Whether to use kernels instead of NumPy on the host."""
    return backend == "kernels" or (backend != "host" and node.device.name != "cpu")


def _is_by_row_passes(node: Node, name: str, lengths: Ints, axes: Ints, norm: str,
                      backend: str) -> bool:  # fmt: skip
    """Whether a few cores transform rows by launches of a plan."""
    is_requested = backend == "auto" and not node.device.traits.is_simt
    of_reals = [name in OF_REALS or name in TO_REALS] + [False] * (len(axes) - 1)
    rows = zip(reversed(lengths), of_reals, strict=True)
    return is_requested and node.size > 0 and all(has_passes(n, is_real) for n, is_real in rows)


def _by_row_passes(node: Node, name: str, lengths: Ints, axes: Ints, norm: str,
                   backend: str) -> Node:  # fmt: skip
    def transform_last(rows: Node, of_rows: Transform) -> Node:
        read = of_rows.length // 2 + 1 if of_rows.to_real else of_rows.length
        return transform_rows(fitted(rows, (read,), (len(rows.shape) - 1,)), of_rows)

    return _along_each(transform_last, node, name, lengths, axes, norm)


def _by_kernels(node: Node, name: str, lengths: Ints, axes: Ints, norm: str, backend: str) -> Node:
    def transform_last(rows: Node, of_rows: Transform) -> Node:
        if _is_by_passes(rows, of_rows):
            return passes.transform_rows(rows, of_rows)
        real = real_of(rows.dtype)
        dtype = real if of_rows.to_real else complex_of(real)
        result = (dtype, (*rows.shape[:-1], of_rows.outputs))
        return launch_call(transformed_rows, [rows], (of_rows,), result)[0]

    return _along_each(transform_last, node, name, lengths, axes, norm)


def _is_by_passes(rows: Node, of_rows: Transform) -> bool:
    """Whether to transform rows by launches of a plan, for which other views are copied."""
    is_copied = rows.kind is VIEW or (rows.kind is BUFFER and not is_contiguous(rows.layout))
    has_rows = rows.size > 0 and of_rows.outputs > 0
    return has_rows and not (is_copied and rows.size * rows.dtype.itemsize > _MAX_COPIED_BYTES)


def _along_each(transform_last: Callable[[Node, Transform], Node], node: Node, name: str,
                lengths: Ints, axes: Ints, norm: str) -> Node:  # fmt: skip
    """Transform the axes one by one; real input is transformed first, real output last."""
    is_inverse, last_axis = name.startswith("i"), len(axes) - 1
    for k in range(len(axes)) if name in TO_REALS else reversed(range(len(axes))):
        n, axis = lengths[k], axes[k]
        to_real = name in TO_REALS and k == last_axis
        outputs = n // 2 + 1 if name in OF_REALS and k == last_axis else n
        scale = {"ortho": n**-0.5, "backward": 1.0, "forward": 1 / n}[norm]
        if is_inverse:
            scale = 1 / (n * scale)
        of_rows = Transform(n, is_inverse, to_real, outputs, to_real, scale)
        is_complex = name not in OF_REALS or k != last_axis
        order = (*(a for a in range(len(node.shape)) if a != axis), axis)
        rows = permute(cast(node, complex_of(real_of(node.dtype))) if is_complex else node, order)
        node = permute(transform_last(rows, of_rows), tuple(map(order.index, range(len(order)))))
    return node


def _by_host(node: Node, name: str, lengths: Ints, axes: Ints, norm: str, backend: str) -> Node:
    result = transform_type(node, name, lengths, axes)
    parameters = (lengths[0], axes[0]) if name in _SINGLE_AXIS else (lengths, axes)
    return host_call(getattr(np.fft, name), [node], (*parameters, norm), result)[0]


implement(
    "fft",
    Implementation(_by_library, _is_for_library),
    Implementation(_by_row_passes, _is_by_row_passes),
    Implementation(_by_kernels, _is_by_kernels),
    _by_host,
    is_structural=True,
)
