"""``mx.fft``: Fourier transforms."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.ops.joining import pad
from metalloid.compat.mlx.core.ops.wrapping import normalized_axes, normalized_axis, with_stream

_NORMS = ("backward", "ortho", "forward")


def _operand(a: Any, is_real: bool, where: str) -> mtl.Array:
    x = operand(a)
    if not x.ndim:
        raise ValueError(f"[{where}] Requires array with at least one dimension.")
    if is_real and x.dtype.kind == "c":
        x = x.real
    if x.dtype.kind != "c" and x.dtype != mtl.float32:
        x = x.astype(mtl.float32)
    return x


def _check_norm(norm: str, where: str) -> None:
    if norm not in _NORMS:
        raise ValueError(f"[{where}] Invalid norm {norm!r}: use one of {', '.join(_NORMS)}.")


def _check_lengths(lengths: Sequence[int], where: str) -> list[int]:
    if any(n <= 0 for n in lengths):
        raise ValueError(f"[{where}] Invalid number of points {list(lengths)}: must be positive.")
    return list(map(int, lengths))  # also those of NumPy


def _one(name: str, doc: str) -> Callable[..., array]:
    own = getattr(mtl.fft, name)

    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str = "backward") -> array:
        _check_norm(norm, name)
        x = _operand(a, name == "rfft", name)
        k = normalized_axis(axis, x.ndim, name)
        if n is None:
            n = x.shape[k] if name != "irfft" else builtins.max(2 * (x.shape[k] - 1), 1)
        (n,) = _check_lengths([n], name)
        if x.shape[k] == 0:
            raise ValueError(f"[{name}] Cannot transform an empty axis.")
        return wrap(own(_complex(x, name), n=n, axis=k, norm=norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = doc
    return with_stream(transform)


def _complex(x: mtl.Array, name: str) -> mtl.Array:
    return x if name.startswith("rfft") or x.dtype.kind == "c" else x.astype(mtl.complex64)


def _over_axes(name: str, doc: str, is_two: bool) -> Callable[..., array]:
    own = getattr(mtl.fft, name.replace("2", "n"))
    default = [-2, -1] if is_two else None

    def transform(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = default,
                  norm: str = "backward") -> array:  # fmt: skip
        _check_norm(norm, name)
        x = _operand(a, name.startswith("rfft"), name)
        if axes is None:
            axes = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
        if s is not None and len(s) != len(axes):
            raise ValueError(f"[{name}] Shape and axes have different sizes.")
        if not axes:
            return wrap(x if name.startswith(("irfft", "rfft")) else _complex(x, name))
        chosen = normalized_axes(list(axes), x.ndim, name)
        if s is not None:
            s = _check_lengths(s, name)
        if any(x.shape[k] == 0 for k in chosen):
            raise ValueError(f"[{name}] Cannot transform an empty axis.")
        return wrap(own(_complex(x, name), s=s, axes=chosen, norm=norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = doc
    return with_stream(transform)


fft = _one("fft", "Discrete Fourier transform.")
ifft = _one("ifft", "Inverse discrete Fourier transform.")
rfft = _one("rfft", "Discrete Fourier transform of real numbers.")
irfft = _one("irfft", "Inverse of `rfft`.")
fft2 = _over_axes("fft2", "Discrete Fourier transform over two axes.", True)
ifft2 = _over_axes("ifft2", "Inverse discrete Fourier transform over two axes.", True)
rfft2 = _over_axes("rfft2", "Discrete Fourier transform of real numbers over two axes.", True)
irfft2 = _over_axes("irfft2", "Inverse of `rfft2`.", True)
fftn = _over_axes("fftn", "Discrete Fourier transform over axes.", False)
ifftn = _over_axes("ifftn", "Inverse discrete Fourier transform over axes.", False)
rfftn = _over_axes("rfftn", "Discrete Fourier transform of real numbers over axes.", False)
irfftn = _over_axes("irfftn", "Inverse of `rfftn`.", False)


def _check_spacing(where: str, n: int, d: float) -> None:
    if n <= 0:
        raise ValueError(f"[{where}] `n` must be greater than 0, got {n}.")
    if not d:
        raise ValueError(f"[{where}] `d` must be non-zero.")


@with_stream
def fftfreq(n: int, d: float = 1.0) -> array:
    """Frequencies of the results of `fft`."""
    _check_spacing("fftfreq", n, d)
    return wrap(mtl.asarray(np.fft.fftfreq(n, d).astype(np.float32)))


@with_stream
def rfftfreq(n: int, d: float = 1.0) -> array:
    """Frequencies of the results of `rfft`."""
    _check_spacing("rfftfreq", n, d)
    return wrap(mtl.asarray(np.fft.rfftfreq(n, d).astype(np.float32)))


def _shifted(a: Any, axes: Any, sign: int, where: str) -> array:
    x = operand(a)
    for k in normalized_axes(axes, x.ndim, where):
        half = x.shape[k] // 2
        x = mtl.roll(x, half if sign > 0 else -half, axis=k)
    return wrap(x)


@with_stream
def fftshift(a: Any, axes: Any = None) -> array:
    """Move the frequency 0 to the middle."""
    return _shifted(a, axes, 1, "fftshift")


@with_stream
def ifftshift(a: Any, axes: Any = None) -> array:
    """Inverse of `fftshift`."""
    return _shifted(a, axes, -1, "ifftshift")


# -- short-time transforms


def _window(window: Any, n_fft: int, win_length: int, where: str) -> mtl.Array:
    if win_length > n_fft or win_length <= 0:
        raise ValueError(f"[{where}] win_length must be in 1 ... n_fft, got {win_length}.")
    if window is None:
        if win_length == 1:
            values = mtl.ones(1, dtype=mtl.float32)
        else:
            angles = 2 * np.pi * np.arange(win_length) / win_length
            values = mtl.asarray((0.5 - 0.5 * np.cos(angles)).astype(np.float32))
    else:
        values = operand(window)
        if values.shape != (win_length,):
            raise ValueError(f"[{where}] window must have shape ({win_length},).")
    before = (n_fft - win_length) // 2
    return mtl.pad(values, (before, n_fft - win_length - before))


@with_stream
def stft(x: Any, n_fft: int = 2048, hop_length: int | None = None, win_length: int | None = None,
         window: Any = None, center: bool = True, pad_mode: str = "reflect",
         norm: str = "backward", onesided: bool | None = None) -> array:  # fmt: skip
    """Short-time Fourier transform along the last axis."""
    _check_norm(norm, "stft")
    a = operand(x)
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft <= 0 or hop <= 0:
        raise ValueError("[stft] n_fft and hop_length must be positive.")
    weights = _window(window, n_fft, n_fft if win_length is None else win_length, "stft")
    is_complex = a.dtype.kind == "c" or weights.dtype.kind == "c"
    if onesided is None:
        onesided = not is_complex
    if onesided and is_complex:
        raise ValueError("[stft] onesided transforms need real numbers.")
    if center:
        widths = [(0, 0)] * (a.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        a = pad(wrap(a), widths, pad_mode)._a
    if a.shape[-1] < n_fft:
        raise ValueError("[stft] The signal is shorter than n_fft.")
    frames = 1 + (a.shape[-1] - n_fft) // hop
    index = mtl.arange(frames, dtype=mtl.int32)[:, None] * hop + mtl.arange(n_fft, dtype=mtl.int32)
    rows = a[..., index] * weights
    result = (rfft if onesided else fft)(wrap(rows), norm=norm)._a
    return wrap(mtl.moveaxis(result, -1, -2))


@with_stream
def istft(stft_matrix: Any, n_fft: int | None = None, hop_length: int | None = None,
          win_length: int | None = None, window: Any = None, center: bool = True,
          norm: str = "backward", onesided: bool | None = None,
          length: int | None = None) -> array:  # fmt: skip
    """Inverse of `stft`, by overlapping and adding."""
    _check_norm(norm, "istft")
    z = mtl.moveaxis(operand(stft_matrix), -1, -2)
    frames, bins = z.shape[-2:]
    if onesided is None:
        onesided = n_fft is None or bins == n_fft // 2 + 1
    size = n_fft or 2 * (bins - 1)
    hop = size // 4 if hop_length is None else hop_length
    weights = _window(window, size, size if win_length is None else win_length, "istft")
    rows = (irfft if onesided else ifft)(wrap(z), n=size, norm=norm)._a
    total = size + hop * (frames - 1)
    index = mtl.arange(frames, dtype=mtl.int32)[:, None] * hop + mtl.arange(size, dtype=mtl.int32)
    batch = rows.shape[:-2]
    flat = (rows * weights).reshape((-1, frames * size))
    added = mtl.zeros((flat.shape[0], total), dtype=flat.dtype)
    added = added.at[:, index.reshape(-1)].add(flat)
    overlap = (
        mtl.zeros(total, dtype=mtl.float32)
        .at[index.reshape(-1)]
        .add(mtl.broadcast_to(mtl.abs(weights * weights), (frames, size)).reshape(-1))
    )
    result = added / mtl.where(overlap > 1e-11, overlap, 1.0)
    start = size // 2 if center else 0
    stop = total - start if length is None else start + length
    if stop > total:
        result = mtl.pad(result, ((0, 0), (0, stop - total)))
    return wrap(result[:, start:stop].reshape((*batch, stop - start)))
