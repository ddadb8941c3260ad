"""Packing of the factors of matrix products on CPUs: a launch before the product's own.

A product reads a packed factor contiguously whatever its strides were, and its elements are already
of the type of the sums. The layout is that of BLIS (F. Van Zee and R. van de Geijn, 2015), with
panels of 32 rows or columns that are as long as the depth.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from metalloid.arrays.ir.dtypes import (
    DType,
    float32,
    kind_of,
    msl_name,
    uint16,
    uint32,
    uint64,
)
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryLaunch
from metalloid.arrays.planning.context import PlanContext
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.matmul_dispatch import (
    FLOATS,
)
from metalloid.arrays.planning.product_factors import (
    MAX_PAIRED_IN_PLACE,
    has_bfloat_pairs,
    packed_factors,
)
from metalloid.arrays.planning.schedule import Factor, LibraryKernel, MaterializeReason
from metalloid.kernels.strides import collapse, row_major

#: These constants equal those of ``products.metal`` and ``packing.metal``.
PANEL, _DEPTH, _BLOCK = 32, 128, 8
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
    is_packed = packed_factors(planner.traits, left.dtype, shape, depth, transposed)
    has_pairs = has_bfloat_pairs(planner.traits, left.dtype, shape, depth)
    has_pairs = has_pairs and _fits(left, -2) and _fits(right, -1)
    if has_pairs and shape[1] <= MAX_PAIRED_IN_PLACE and _has_pairs_in_place(left):
        return _pairs_in_place(left), _packed(planner, right, -1, has_pairs)
    return tuple(
        _packed(planner, factor, axis, has_pairs) if is_so or has_pairs else factor
        for factor, axis, is_so in zip(factors, (-2, -1), is_packed, strict=True)
    )


def paired(planner: PlanContext, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The factors of dot products, with pairs of bfloats as elements where that is profitable."""
    left, right = factors
    depth, shape = left.iteration_space[-1], (left.iteration_space[-2], right.iteration_space[-1])
    has_pairs = has_bfloat_pairs(planner.traits, left.dtype, shape, depth)
    has_pairs &= all(factor.ops[factor.result].kind == "load" for factor in factors)
    if has_pairs and _has_pairs_in_place(left) and _has_pairs_in_place(right, -2):
        return _pairs_in_place(left), _pairs_in_place(right, -2)
    return factors


def _has_pairs_in_place(factor: Factor, axis: int = -1) -> bool:
    """Whether pairs of bfloats along the axis of the depth are words of memory."""
    return factor.ops[factor.result].strides[axis] == 1 and factor.iteration_space[axis] % 2 == 0


def _pairs_in_place(factor: Factor, axis: int = -1) -> Factor:
    """The factor, whose elements are pairs of bfloats along the axis of the depth."""
    op = factor.ops[factor.result]
    space, strides = list(factor.iteration_space), list(op.strides)
    space[axis] //= 2
    strides[axis] = 2
    return Factor(tuple(space), (replace(op, dtype=uint32, strides=tuple(strides)),), 0)


def _strides(factor: Factor) -> Ints:
    op = factor.ops[factor.result]
    return op.strides if op.kind == "load" else ()


def _is_transposed(factor: Factor) -> bool:
    return _strides(factor)[-2:-1] == (1,) != _strides(factor)[-1:]


def _fits(factor: Factor, axis: int) -> bool:
    """Whether a factor is a matrix or one stack of them, which can be packed along an axis."""
    op, space = factor.ops[factor.result], factor.iteration_space
    is_simple = op.kind == "load" and kind_of(op.dtype) != "c" and all(space)
    if not is_simple or min(op.strides) < 0 or 0 in op.strides[-2:]:
        return False
    shape, size = _stack(factor), _panels_size(space, axis)
    extents, _ = collapse(shape, op.strides[:-2])
    is_padded = axis == -2 and math.prod(space[:-2]) > 1 and space[axis] % PANEL > 0
    if len(extents) > 1 or 1 not in op.strides[-2:] or is_padded:
        return False
    return max(size, *op.strides) < _MAX_NUMBER


def _stack(factor: Factor) -> Ints:
    """The axes before those of a matrix; one that is broadcast is packed once."""
    strides = factor.ops[factor.result].strides
    outer = zip(factor.iteration_space[:-2], strides[:-2], strict=True)
    return tuple(1 if step == 0 else n for n, step in outer)


def _panels_size(space: Ints, axis: int) -> int:
    return -(-space[axis] // PANEL) * PANEL * space[-3 - axis]


def _packed(planner: PlanContext, factor: Factor, axis: int, has_pairs: bool) -> Factor:
    """Pack a factor into panels along one of its axes, if it fits."""
    if not _fits(factor, axis):
        return factor
    op, space, shape = factor.ops[factor.result], factor.iteration_space, _stack(factor)
    (width, along_width), (depth, along_depth) = (
        (space[k], op.strides[k]) for k in (axis, -3 - axis)
    )
    extents, (steps,) = collapse(shape, op.strides[:-2])
    if has_pairs:
        space = (
            (*space[:-1], -(-depth // 2)) if axis == -2 else (*space[:-2], -(-depth // 2), width)
        )
    packed_depth, size = space[-3 - axis], _panels_size(space, axis)
    dtype = uint32 if has_pairs else _sum_type(factor.dtype)
    out = planner.new_buffer(
        dtype, (*shape, -(-width // PANEL), packed_depth, PANEL), MaterializeReason.PACKED
    )
    launch = _launch(
        (factor.dtype, dtype),
        (width, depth, math.prod(extents), packed_depth),
        (along_width, along_depth, math.prod(steps)),
    )
    planner.steps.append(LibraryKernel(launch, ((op.data, op.offset),), (out,)))
    strides = [
        0 if n == 1 else size * step for n, step in zip(shape, row_major(shape), strict=True)
    ]
    strides += [packed_depth, PANEL] if axis == -2 else [PANEL, packed_depth]
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
    """The launch that packs matrices; extents and strides are along the width, depth and stack.

    The depth of the panels is half the depth if elements are packed in pairs.
    """
    element, sum_type = map(msl_name, types)
    width, depth, count, packed_depth = size
    is_along_depth = strides[1] == 1
    has_pairs = "true" if packed_depth < depth else "false"
    suffix, thread = ("_transposed", "lane") if is_along_depth else ("", "thread_.x")
    body = (
        f"numpy::pack_panel{suffix}<{sum_type}, {has_pairs}>(\n"
        f"    (device const {element} *)x0 + ulong(group.z) * params.step,\n"
        f"    (device {sum_type} *)out + ulong(group.z) * params.size,\n"
        f"    uint2(params.width, params.depth), params.stride, group, {thread});"
    )
    threads = _BLOCK if is_along_depth else PANEL
    panels = -(-width // PANEL)
    return LibraryLaunch(
        name="pack_panels",
        body=body,
        files=("products/products", "products/packing"),
        reads=(0,),
        writes=(1,),
        numbers=(
            ("width", width),
            ("depth", depth),
            ("stride", strides[0] if is_along_depth else strides[1]),
            ("step", strides[2]),
            ("size", panels * PANEL * packed_depth),
        ),
        threads=(-(-packed_depth // _DEPTH) * threads, panels, count),
        group_size=(threads, 1, 1),
        uses_lanes=is_along_depth,
        max_threads=threads if is_along_depth else None,
    )
