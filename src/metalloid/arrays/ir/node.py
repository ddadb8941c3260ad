"""Nodes of the expression graph.

A node never changes its value. Once evaluated, it drops its operands and becomes a leaf with a
buffer, so that their memory can be freed. A node that depends on a tracer keeps its operands:
transforms read them.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterable
from typing import Any, Final

from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import DOUBLES, DType, int64
from metalloid.arrays.ir.layout import Ints, Layout, ViewOp, apply_view, contiguous, viewed_shape
from metalloid.arrays.ir.memory import SHARED, UNORDERED, Memory
from metalloid.arrays.ir.native import has_native_slots
from metalloid.arrays.ir.ops import CAST, Op
from metalloid.errors import UnsupportedType
from metalloid.runtime.devices.device import Device

#: Kinds of nodes.
BUFFER: Final = "buffer"  # evaluated; data: (strides, offset)
CONSTANT: Final = "constant"  # data: the value
IOTA: Final = "iota"  # 0, 1, 2 ... through a layout; data: (strides, offset)
ELEMENTWISE: Final = "elementwise"  # data: an Op
VIEW: Final = "view"  # data: a ViewOp
REDUCE: Final = "reduce"  # data: (name of the Reduction, axes); axes keep extent 1
GATHER: Final = "gather"  # data: the axes of the first operand that the others index
SCATTER_SLICES: Final = "scatter_slices"  # data: the slice of the result that each operand fills
CUSTOM_CALL: Final = "custom_call"  # data: a Call
LIBRARY_CALL: Final = "library_call"  # data: a LibraryCall
GET_TUPLE_ITEM: Final = "get_tuple_item"  # data: index of a result of a Call
MATMUL: Final = "matmul"  # data: a Product
PRIMITIVE: Final = "primitive"  # data: a Primitive, which evaluation replaces by other nodes
TUPLE: Final = "tuple"  # the results of a primitive that evaluation has replaced
TRACER: Final = "tracer"  # an input of a traced function; data: its Trace; args: its value if known

#: Bits of `Node.flags`, after those of `Memory.sharing`.
TRACED = 4
HAS_PRIMITIVES = 8
ABSTRACT = 16
CHECKED = 32
_SHARING = SHARED | UNORDERED

topological_ids = itertools.count()


@has_native_slots
class Node:
    """A node of the expression graph.

    Attributes
    ----------
    kind : str
        One of the constants of this module.
    data : object
        Depends on the kind.
    args : tuple of Node
    dtype : numpy.dtype
    shape : tuple of int
    device : Device
    memory : Memory or None
    inlined : bool
        Whether an evaluation computed it without saving it.
    flags : int
        Of all that its value depends on: the bits of `Memory.sharing`, `TRACED` if there is a
        tracer, `ABSTRACT` if there is one without a value, `HAS_PRIMITIVES` if there is a primitive
        that has not been lowered, `CHECKED` if there are indices to check (`index_checks`).
    topological_id : float
        Larger than the ids of its operands.
    """

    __slots__ = ("__weakref__", "args", "data", "device", "dtype", "flags", "inlined", "kind",
                 "memory", "shape", "topological_id")  # fmt: skip
    leaf_kind: Final = BUFFER

    def __init__(self, kind: str, data: Any, args: tuple[Node, ...], dtype: DType, shape: Ints,
                 device: Device, memory: Memory | None = None) -> None:  # fmt: skip
        if dtype in DOUBLES and not device.has_float64:
            raise _no_doubles(dtype, device)
        self.kind = kind
        self.data = data
        self.args = args
        self.dtype = dtype
        self.shape = shape
        self.device = device
        self.memory = memory
        self.inlined = False
        flags: int = 0 if memory is None else memory.sharing
        for arg in args:
            flags |= arg.flags
        self.flags: int = flags
        self.topological_id: float = next(topological_ids)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def layout(self) -> Layout:
        """Layout of a BUFFER or an IOTA."""
        return Layout(self.shape, *self.data)

    def materialize(self, memory: Memory, layout: Layout) -> None:
        """Become a leaf: the values are known."""
        self.memory, self.data = memory, (layout.strides, layout.offset)
        self.kind = BUFFER
        self.args = ()
        self.flags = memory.sharing

    @property
    def is_shared(self) -> bool:
        """Whether another library may write to memory that its value depends on."""
        return bool(self.flags & _SHARING)

    def become(self, other: Node) -> None:
        """Take over the operation of a node of the same value, type and shape."""
        self.kind, self.data, self.args = other.kind, other.data, other.args
        self.memory, self.flags, self.inlined = other.memory, other.flags, other.inlined
        if self.kind is GET_TUPLE_ITEM or self.kind is MATMUL:
            call = self.data if self.kind is MATMUL else self.args[0].data
            call.add_result(self, 0 if self.kind is MATMUL else self.data)

    def become_tuple(self, results: Iterable[Node]) -> None:
        """Become the results of a primitive."""
        self.kind, self.data, self.args = TUPLE, None, tuple(results)
        self.flags = 0
        for result in self.args:
            self.flags |= result.flags

    def __repr__(self) -> str:
        return f"<Node {self.kind} {self.data} {self.dtype}{list(self.shape)}>"


def _no_doubles(dtype: DType, device: Device) -> UnsupportedType:
    return UnsupportedType(
        f"[array] there are no arrays of {dtype} on {device.name}: Metal has no 'double'. "
        "Use float32 or complex64, or device='cpu'."
    )


_bare = object.__new__


def operation(op: Op, args: tuple[Node, Node], dtype: DType, shape: Ints, device: Device) -> Node:
    """An ELEMENTWISE node of two operands; faster than the class, as it dominates small graphs."""
    if dtype in DOUBLES and not device.has_float64:
        raise _no_doubles(dtype, device)
    node = _bare(Node)
    node.kind = ELEMENTWISE
    node.data = op
    node.args = args
    node.dtype = dtype
    node.shape = shape
    node.device = device
    node.memory = None
    node.inlined = False
    first, second = args
    node.flags = first.flags | second.flags
    node.topological_id = next(topological_ids)
    return node


def expression(kind: str, data: Any, args: tuple[Node, ...], dtype: DType, shape: Ints,
               device: Device) -> Node:  # fmt: skip
    """A node without memory; faster than the class."""
    node: Node | None = native.new_node(kind, data, args, dtype, shape, device)
    return Node(kind, data, args, dtype, shape, device) if node is None else node


@native.when_loaded
def _load_new_node(functions: Any) -> None:
    native.new_node = functions.mtl_new_nodes(ctypes.py_object(topological_ids))
    state = (BUFFER, IOTA, VIEW, ViewOp, "slice", "reshape", "broadcast", "permute", (),
             topological_ids, int, slice, Ellipsis)  # fmt: skip
    native.moved, native.selected = functions.mtl_views(ctypes.py_object(state))
    of_calls = BUFFER, topological_ids, (), float, list
    native.copied_leaf = functions.mtl_copied_leaf(ctypes.py_object((BUFFER, (), topological_ids)))
    native.known_call = functions.mtl_known_call(ctypes.py_object(of_calls))


def in_memory(memory: Memory, layout: Layout, dtype: DType) -> Node:
    """A leaf."""
    return Node(BUFFER, (layout.strides, layout.offset), (), dtype, layout.shape, memory.device,
                memory)  # fmt: skip


def constant(value: Any, dtype: DType, device: Device) -> Node:
    """A constant of shape ()."""
    return Node(CONSTANT, value, (), dtype, (), device)


def iota(shape: Ints, axis: int, device: Device) -> Node:
    """The indices along an axis: 0, 1, 2 ... in int64."""
    strides = tuple(int(k == axis) for k in range(len(shape)))
    return Node(IOTA, (strides, 0), (), int64, shape, device)


def apply(op: Op, dtype: DType, *args: Node) -> Node:
    """An elementwise operation on operands of one shape or of shape ()."""
    shape: Ints = ()
    for arg in args:
        if arg.shape:
            shape = arg.shape
            break
    return expression(ELEMENTWISE, op, args, dtype, shape, args[0].device)


def cast(node: Node, dtype: DType) -> Node:
    """Convert to another type."""
    if node.dtype == dtype:
        return node
    return expression(ELEMENTWISE, CAST, (node,), dtype, node.shape, node.device)


def move(node: Node, view_op: ViewOp) -> Node:
    """A view; a view of a leaf is a leaf."""
    view: Node | None = native.moved(node, view_op)
    if view is not None:
        return view
    kind = node.kind
    if kind is BUFFER or kind is IOTA:
        layout = apply_view(node.layout, view_op)
        if layout is not None:
            return Node(kind, (layout.strides, layout.offset), (), node.dtype, layout.shape,
                        node.device, node.memory)  # fmt: skip
    shape = viewed_shape(node.shape, view_op)
    if view_op.kind in ("reshape", "broadcast") and is_same_shape(shape, node.shape):
        return node
    return expression(VIEW, view_op, (node,), node.dtype, shape, node.device)


def is_same_shape(a: Ints, b: Ints) -> bool:
    """Whether two shapes are equal. Symbolic extents are not compared if the lengths differ."""
    return len(a) == len(b) and a == b


def reshape(node: Node, shape: Ints) -> Node:
    """The same elements in another shape."""
    return node if is_same_shape(shape, node.shape) else move(node, ViewOp("reshape", shape))


def broadcast(node: Node, shape: Ints) -> Node:
    """Repeat along new axes, and along axes of extent 1."""
    return node if is_same_shape(shape, node.shape) else move(node, ViewOp("broadcast", shape))


def permute(node: Node, axes: Ints) -> Node:
    """Reorder the axes."""
    if axes == tuple(range(len(axes))):
        return node
    return move(node, ViewOp("permute", axes))


def reduce(node: Node, name: str, axes: Ints) -> Node:
    """A reduction; reduced axes keep extent 1."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(node.shape))
    return expression(REDUCE, (name, axes), (node,), node.dtype, shape, node.device)


def fresh(dtype: DType, shape: Ints, device: Device) -> Node:
    """A leaf with its own, uninitialised memory."""
    memory = Memory(device, math.prod(shape) * dtype.itemsize)
    return in_memory(memory, contiguous(shape), dtype)
