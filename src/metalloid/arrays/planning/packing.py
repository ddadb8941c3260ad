"""Packing of the factors of matrix products on CPUs: a launch before the product's own.

A product reads a packed factor contiguously whatever its strides were, and its elements are already
of the type of the sums. The layout is that of BLIS (F. Van Zee and R. van de Geijn, 2015), with
panels of 32 rows or columns that are as long as the depth.
"""

from __future__ import annotations

import functools
import math

from metalloid.arrays.ir.dtypes import DType, float32, kind_of, msl_name, uint16, uint32, uint64
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryLaunch
from metalloid.arrays.planning.context import PlanContext
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.matmul_dispatch import FLOATS, packed_factors
from metalloid.arrays.planning.schedule import Factor, LibraryKernel, MaterializeReason
from metalloid.kernels.strides import collapse, row_major

#: These constants equal those of ``products.metal``.
PANEL, _DEPTH = 32, 128
#: Extents and strides of a launch are 32-bit.
_MAX_NUMBER = 2**32


def pack(planner: PlanContext, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Pack the factors for which that is profitable; the others are returned unchanged."""
    left, right = factors
    *batch, rows, depth = left.iteration_space
    if not any(_strides(right)[:-2]):  # a stack of matrices times a single matrix
        rows *= math.prod(batch)
    transposed = _is_transposed(left), _is_transposed(right)
    shape = rows, right.iteration_space[-1]
    is_packed = packed_factors(left.dtype, shape, depth, transposed)
    return tuple(
        _packed(planner, factor, axis) if is_so else factor
        for factor, axis, is_so in zip(factors, (-2, -1), is_packed, strict=True)
    )


def _strides(factor: Factor) -> Ints:
    op = factor.ops[factor.result]
    return op.strides if op.kind == "load" else ()


def _is_transposed(factor: Factor) -> bool:
    return _strides(factor)[-2:-1] == (1,) != _strides(factor)[-1:]


def _packed(planner: PlanContext, factor: Factor, axis: int) -> Factor:
    """Pack a factor into panels along one of its axes, if it is a matrix or one stack of them."""
    op, space = factor.ops[factor.result], factor.iteration_space
    is_simple = op.kind == "load" and kind_of(op.dtype) != "c" and all(space)
    if not is_simple or min(op.strides) < 0 or 0 in op.strides[-2:]:
        return factor
    (width, along_width), (depth, along_depth) = (
        (space[k], op.strides[k]) for k in (axis, -3 - axis)
    )
    # A matrix that is broadcast is packed once.
    shape = tuple(
        1 if step == 0 else n for n, step in zip(space[:-2], op.strides[:-2], strict=True)
    )
    extents, (steps,) = collapse(shape, op.strides[:-2])
    panels = -(-width // PANEL)
    size = panels * PANEL * depth
    is_padded = axis == -2 and math.prod(space[:-2]) > 1 and width % PANEL > 0
    if len(extents) > 1 or 1 not in (along_width, along_depth) or is_padded:
        return factor
    if max(size, *op.strides) >= _MAX_NUMBER:
        return factor
    dtype = _sum_type(factor.dtype)
    out = planner.new_buffer(dtype, (*shape, panels, depth, PANEL), MaterializeReason.PACKED)
    launch = _launch(
        (factor.dtype, dtype),
        (width, depth, math.prod(extents)),
        (along_width, along_depth, math.prod(steps)),
    )
    planner.steps.append(LibraryKernel(launch, ((op.data, op.offset),), (out,)))
    strides = [
        0 if n == 1 else size * step for n, step in zip(shape, row_major(shape), strict=True)
    ]
    strides += [depth, PANEL] if axis == -2 else [PANEL, depth]
    load = KernelOp("load", out, (), dtype, tuple(strides))
    return Factor(space, (load,), 0, is_packed=True)


def _sum_type(dtype: DType) -> DType:
    if kind_of(dtype) in "iu":
        if dtype.itemsize <= 2:
            return uint16
        return uint32 if dtype.itemsize <= 4 else uint64
    return float32 if dtype in FLOATS else dtype


@functools.lru_cache(maxsize=1024)
def _launch(types: tuple[DType, DType], size: Ints, strides: Ints) -> LibraryLaunch:
    """The launch that packs matrices; extents and strides are along the width, depth and stack."""
    element, sum_type = map(msl_name, types)
    width, depth, count = size
    is_along_depth = strides[1] == 1
    tiles = f"threadgroup {sum_type} tiles[2 * numpy::packed_tile];\n" if is_along_depth else ""
    body = (
        f"{tiles}numpy::pack_panel<{sum_type}, {'true' if is_along_depth else 'false'}>(\n"
        f"    {'tiles' if is_along_depth else 'nullptr'},\n"
        f"    (device const {element} *)x0 + ulong(group.z) * params.step,\n"
        f"    (device {sum_type} *)out + ulong(group.z) * params.size,\n"
        "    uint2(params.width, params.depth), params.stride, group, thread_.x);"
    )
    panels = -(-width // PANEL)
    return LibraryLaunch(
        name="pack_panels",
        body=body,
        files=("products/products",),
        reads=(0,),
        writes=(1,),
        numbers=(
            ("width", width),
            ("depth", depth),
            ("stride", strides[0] if is_along_depth else strides[1]),
            ("step", strides[2]),
            ("size", panels * PANEL * depth),
        ),
        threads=(-(-depth // _DEPTH) * PANEL, panels, count),
        group_size=(PANEL, 1, 1),
        uses_lanes=False,
    )
