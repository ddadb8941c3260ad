"""Reductions and scans go along some axes of arrays and keep the others."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError
from metalloid.kernels.builders.builder_parameters import BuilderParameter
from metalloid.kernels.operands import (
    MAX_ELEMENTS,
    Operand,
)
from metalloid.kernels.strides import broadcast_shape, collapse, row_major


def normalised_axes(where: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that `axis` means: all of them for None.

    Raises
    ------
    ArgumentError
        If an array of `ndim` axes does not have them, or one is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    try:
        axes = tuple(
            operator.index(a) for a in (axis if isinstance(axis, tuple | list) else [axis])
        )
    except TypeError:
        raise ArgumentError(
            f"[{where}] axis expects an int or a tuple of ints, got {axis!r}."
        ) from None
    if any(not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) != len(axes):
        raise ArgumentError(
            f"[{where}] axis {axis!r} is invalid for an array of {ndim} axes: "
            f"each must be between {-ndim} and {ndim - 1}, and occur once."
        )
    return tuple(sorted(a % ndim for a in axes))


class AxisPlan:
    """The elements of some inputs as a table: a row of elements to reduce for each outer index.

    Attributes
    ----------
    shape : tuple of int
        Of the inputs together.
    along : tuple of int
        The axes that are followed.
    outer_shape : tuple of int
    rows, count : int
        Size of the table.
    axes : (int, int)
        How many axes are left of each kind after merging.
    is_contiguous : bool
        Whether neighbours along a row are neighbours in some input's memory.
    """

    def __init__(
        self,
        where: str,
        parameters: Sequence[BuilderParameter],
        operands: Sequence[Operand],
        axis: Any,
    ) -> None:
        followed = {
            parameter.name: operand
            for parameter, operand in zip(parameters, operands, strict=True)
            if not parameter.is_raw and not operand.is_number
        }
        if not followed:
            raise ArgumentError(
                f"[{where}] expects an array that is not raw: it determines the shape."
            )
        self.shape = broadcast_shape(
            where, *(o.shape for o in followed.values() if not o.is_number)
        )
        if math.prod(self.shape) > MAX_ELEMENTS:
            raise ArgumentError(
                f"[{where}] the shape {self.shape} has {math.prod(self.shape)} elements; "
                f"a grid has at most {MAX_ELEMENTS}."
            )
        self.along = normalised_axes(where, axis, len(self.shape))
        self._outer_axes = tuple(a for a in range(len(self.shape)) if a not in self.along)
        self.outer_shape = tuple(self.shape[a] for a in self._outer_axes)
        self.rows = math.prod(self.outer_shape)
        self.count = math.prod(self.shape[a] for a in self.along)
        self._strides = {name: o.broadcast(self.shape) for name, o in followed.items()}
        self._strides["index"] = row_major(self.shape)
        self._starts = {name: o.start for name, o in followed.items()}
        self._collapse()

    def _collapse(self) -> None:
        names = list(self._strides)
        layout: dict[str, np.ndarray] = {}
        counts = []
        steps: list[tuple[int, ...]] = []
        for kind, axes in (("outer", self._outer_axes), ("along", self.along)):
            strides = [[self._strides[name][a] for a in axes] for name in names]
            extents, steps = collapse([self.shape[a] for a in axes], *strides)
            counts.append(len(extents))
            layout[kind] = np.array(extents or [1], np.uint32)
            for name, step in zip(names, steps, strict=True):
                start = self._starts.get(name, 0) if kind == "outer" else 0
                layout[f"{name}_{kind}"] = np.array([*step, start], np.int64)
        self.axes = (counts[0], counts[1])
        self.is_contiguous = not steps[0] or any(step[-1] == 1 for step in steps[:-1])
        self.layout = layout

    def add_output(self, name: str, operand: Operand, strides: tuple[int, ...]) -> None:
        """Let the layout say where an output's elements lie.

        Parameters
        ----------
        strides : tuple of int
            For each axis of the inputs; 0 for those that are reduced.
        """
        self._strides[name], self._starts[name] = strides, operand.start
        self._collapse()
