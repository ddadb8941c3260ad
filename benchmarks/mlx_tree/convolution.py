"""Convolutions as MLX describes them to its kernels, and what they must give."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from mlx_tree.agreement import element_strides
from mlx_tree.products import exactly, operand, structure


def params_layout(axes: int) -> np.dtype:
    """``MLXConvParams`` for images of `axes` axes."""
    return np.dtype(
        [(name, np.int32) for name in ("N", "C", "O")]
        + [(name, np.int32, axes) for name in ("iS", "wS", "oS", "str", "pad", "kdil", "idil")]
        + [(name, np.int64, axes + 2) for name in ("in_strides", "wt_strides", "out_strides")]
        + [("groups", np.int32), ("flip", np.bool_)],
        align=True,
    )


@dataclass(frozen=True)
class Convolution:
    """Images (n, *size, channels) by filters (filters, *filter, channels / groups).

    Attributes
    ----------
    stride, pad, dilation : tuple of int
        Of the filter, along each axis; zeros stand around the image.
    spread : tuple of int
        Dilation of the image.
    flip : bool
        Whether the filter is walked from its end.
    """

    n: int
    channels: int
    filters: int
    size: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    spread: tuple[int, ...]
    groups: int = 1
    flip: bool = False

    @classmethod
    def of(cls, n, channels, filters, size, filter_size, *, stride=1, pad=1, dilation=1, spread=1,
           **others):  # fmt: skip
        """With the same number along each axis."""
        same = [(value,) * len(size) for value in (stride, pad, dilation, spread)]
        return cls(n, channels, filters, tuple(size), tuple(filter_size), *same, **others)

    @property
    def out_size(self) -> tuple[int, ...]:
        """Size of a result."""
        return tuple(
            (1 + s * (i - 1) + 2 * p - 1 - d * (f - 1)) // step + 1
            for i, f, step, p, d, s in zip(self.size, self.filter, self.stride, self.pad,
                                           self.dilation, self.spread, strict=True)
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Number of positions of all results."""
        return self.n * int(np.prod(self.out_size))

    def operands(self, rng, dtype) -> tuple[np.ndarray, np.ndarray]:
        """Images and filters."""
        image = operand(rng, (self.n, *self.size, self.channels), dtype)
        shape = (self.filters, *self.filter, self.channels // self.groups)
        return image, operand(rng, shape, dtype)

    def params(self, image, weights, out) -> np.void:
        """``MLXConvParams`` for arrays that are contiguous."""
        return structure(
            params_layout(len(self.size)), N=self.n, C=self.channels, O=self.filters, iS=self.size,
            wS=self.filter, oS=self.out_size, str=self.stride, pad=self.pad, kdil=self.dilation,
            idil=self.spread, in_strides=element_strides(image),
            wt_strides=element_strides(weights), out_strides=element_strides(out),
            groups=self.groups, flip=self.flip,
        )  # fmt: skip

    def unfolded(self, image: np.ndarray) -> np.ndarray:
        """(positions, positions in the filter, channels): what each result is a sum over."""
        out = np.zeros((self.n, *self.out_size, int(np.prod(self.filter)), self.channels),
                       image.dtype)  # fmt: skip
        for number, position in enumerate(itertools.product(*map(range, self.filter))):
            taken, valid = [], []
            for axis in range(len(self.size)):
                tap = self.filter[axis] - 1 - position[axis] if self.flip else position[axis]
                coordinate = np.arange(self.out_size[axis]) * self.stride[axis] - self.pad[axis]
                coordinate = coordinate + tap * self.dilation[axis]
                source, rest = np.divmod(coordinate, self.spread[axis])
                inside = (source >= 0) & (source < self.size[axis]) & (rest == 0)
                taken.append(np.where(inside, source, 0))
                valid.append(inside)
            values = image[(slice(None), *np.ix_(*taken))]
            mask = functools.reduce(np.logical_and.outer, valid)
            out[..., number, :] = np.where(mask[None, ..., None], values, 0)
        return out.reshape(self.rows, -1, self.channels)

    def exact(self, image, weights) -> tuple[np.ndarray, np.ndarray]:
        """The results (n, *size, filters), and the sums of the magnitudes of their terms."""
        patches, weights = self.unfolded(exactly(image)), exactly(weights)
        taps, per_group = patches.shape[1], self.channels // self.groups
        patches = patches.reshape(self.rows, taps, self.groups, per_group)
        weights = weights.reshape(self.groups, -1, taps, per_group)
        shape = (self.n, *self.out_size, self.filters)
        terms = "rtgc,gotc->rgo"
        return (
            np.einsum(terms, patches, weights, optimize=True).reshape(shape),
            np.einsum(terms, np.abs(patches), np.abs(weights), optimize=True).reshape(shape),
        )

    @property
    def terms(self) -> int:
        """Products that a result is the sum of."""
        return int(np.prod(self.filter)) * self.channels // self.groups
