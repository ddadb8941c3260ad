"""Matrix products by the vendor library: preparation of its operands."""

from __future__ import annotations

import math

from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.layout import Ints, Layout, ViewOp, apply_view, contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node, in_memory
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.runtime.devices.libraries import Matrices, Products
from metalloid.runtime.memory.buffer import Buffer


def multiplied(
    left: Node, right: Node, shape: Ints, products: Products, allow_tf32: bool
) -> Memory:
    """Multiply two stacks of equally many matrices, all evaluated and none of them empty.

    If one matrix is the right factor of all, a single product multiplies the rows of all left ones.
    """
    *batch, rows, depth = left.shape
    columns, count = shape[-1], math.prod(batch)
    are_rows = apply_view(left.layout, ViewOp("reshape", (count * rows, depth))) is not None
    if not any(right.layout.strides[:-2]) and (are_rows or not products.may_repeat):
        strides, offset = right.layout.strides[-2:], right.layout.offset
        assert right.memory is not None
        right = in_memory(right.memory, Layout((depth, columns), strides, offset), right.dtype)
        rows, count = count * rows, 1
    memory = Memory(left.device, math.prod(shape) * left.dtype.itemsize)
    result = in_memory(memory, contiguous((count, rows, columns)), left.dtype)
    # The nodes hold copies until the launch.
    may_repeat = products.may_repeat
    nodes = (
        _stack(left, (count, rows, depth), may_repeat),
        _stack(right, (count, depth, columns), may_repeat),
        result,
    )
    first, second, third = (operand for node in nodes if (operand := _matrices(node, may_repeat)))
    products.multiply(first, second, third, count, allow_tf32)
    return memory


def _stack(node: Node, shape: Ints, may_repeat: bool) -> Node:
    """Return a node as matrices that the library supports, copied if necessary."""
    layout = apply_view(node.layout, ViewOp("reshape", shape))
    if layout is not None:
        assert node.memory is not None
        stack = in_memory(node.memory, layout, node.dtype)
        if _matrices(stack, may_repeat) is not None:
            return stack
    copy = contiguous_copy(node)
    evaluate([copy], wait=False)
    assert copy.memory is not None
    return in_memory(copy.memory, contiguous(shape), node.dtype)


def _matrices(stack: Node, may_repeat: bool) -> Matrices | None:
    """Describe matrices for the library; None if their layout is not supported."""
    assert stack.memory is not None
    (count, rows, columns), (step, down, right) = stack.shape, stack.layout.strides
    is_transposed = down == 1 != right and columns > 1
    length, lines = (rows, columns) if is_transposed else (columns, rows)
    line, inner = (right, down) if is_transposed else (down, right)
    if lines == 1:
        line = length
    if count == 1:
        step = lines * line
    is_dense = (inner == 1 or length == 1) and line >= length
    is_bound = isinstance(stack.memory.bound, Buffer)
    is_disjoint = step >= lines * line or (may_repeat and step == 0)
    if not is_bound or not is_dense or not is_disjoint or step % line:
        return None
    size, name = stack.dtype.itemsize, stack.dtype.name
    start, row, matrix = (n * size for n in (stack.layout.offset, line, step))
    return Matrices(stack.memory.bound, start, rows, columns, row, matrix, is_transposed, name)
