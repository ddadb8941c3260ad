"""Calls of programs that are one product of matrices, which BLAS computes.

Each function of Python that runs between two products takes longer than usual, as BLAS has evicted
its instructions: with the general path, a product of 200 x 200 takes a sixth longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.execution.calls import read_array
from metalloid.arrays.execution.executable import ExecutablePlan
from metalloid.arrays.ir.layout import Layout, is_contiguous
from metalloid.arrays.ir.node import BUFFER, Node
from metalloid.arrays.lowering.matmul import Product, multiply_into
from metalloid.arrays.planning.schedule import CallStep
from metalloid.settings import settings


class ProductCall:
    """The product of two arrays of the types and layouts of an earlier call.

    Parameters
    ----------
    array : type
        That of arrays, from their nodes.
    checks : sequence
        See `Program.native`.
    factors : sequence of (int, bool)
        Which argument each factor is, and whether it is transposed.
    layout : Layout
        Of the product.
    is_tuple : bool
        Whether it is the only element of a tuple.
    """

    def __init__(self, array: Any, checks: Sequence[Any], factors: Sequence[tuple[int, bool]],
                 layout: Layout, is_tuple: bool) -> None:  # fmt: skip
        self._array = array
        self._checks, self._factors, self._layout = list(checks), factors, layout
        self._is_tuple, self._version, self._read = is_tuple, settings.version, read_array()
        self._dtype, _, _, self._device = checks[0]

    @classmethod
    def of(cls, array: Any, plan: ExecutablePlan, nodes: Sequence[Node],
           leaves: Sequence[int | None], checks: Sequence[Any], result: tuple[int, Layout],
           is_tuple: bool) -> ProductCall | None:  # fmt: skip
        """The call of a program; None if it is no such product.

        Parameters
        ----------
        leaves : sequence of (int or None)
            By leaf of the plan, the argument that it is.
        result : tuple of (int, Layout)
            Source of the plan, and layout, of the only result.
        """
        step = plan.steps[0] if len(plan.steps) == 1 else None
        if not isinstance(step, CallStep) or any(isinstance(check, type) for check in checks):
            return None
        call = nodes[step.index].data
        layout = result[1]
        if not (
            isinstance(call, Product)
            and call.is_written_in_place(plan.device)
            and len(layout.shape) == 2
            and is_contiguous(layout)
            and step.outs == (result[0],)
        ):
            return None
        factors = []
        for source, factor in step.args:
            leaf = plan.sources[source].leaf
            argument = None if leaf is None else leaves[leaf]
            if argument is None or factor.offset:
                return None
            _, shape, strides, _ = checks[argument]
            swapped = Layout(factor.shape[::-1], factor.strides[::-1], 0)
            if factor != (shape, strides, 0) and swapped != (shape, strides, 0):
                return None
            factors.append((argument, factor != (shape, strides, 0)))
        return cls(array, checks, factors, layout, is_tuple)

    def __call__(self, args: Sequence[Any]) -> Any:
        """The product; None if the arguments are of other kinds."""
        device = self._device
        if (
            self._version != settings.version
            or device.recording is not None
            or len(args) != len(self._checks)
        ):
            return None
        for value, (dtype, shape, strides, _) in zip(args, self._checks):  # noqa: B905 - same length
            if type(value) is not self._array:
                return None
            node = value._node
            if (
                node.kind is not BUFFER
                or node.dtype is not dtype
                or node.shape != shape
                or node.data[0] != strides
                or node.device is not device
            ):
                return None
        (first, first_is_transposed), (second, second_is_transposed) = self._factors
        left, right = self._read(args[first]._node), self._read(args[second]._node)
        if left is None or right is None:
            return None
        product = multiply_into(
            left.T if first_is_transposed else left,
            right.T if second_is_transposed else right,
            self._layout,
            self._dtype,
            device,
        )
        array = self._array(product)
        return (array,) if self._is_tuple else array
