"""Transposition: from the tangents of results to the cotangents of inputs.

Tangents are linear expressions of the tangents of the inputs. Read backwards, they give the
cotangents: the vector-Jacobian product, at the cost of a Jacobian-vector product. For complex
numbers it is the product with the adjoint Jacobian, as in MLX and PyTorch: factors are conjugated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from metalloid.arrays.array import Array
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.layout import Ints, ViewOp
from metalloid.arrays.ir.node import (
    ELEMENTWISE,
    GATHER,
    GET_TUPLE_ITEM,
    PRIMITIVE,
    REDUCE,
    SCATTER_SLICES,
    VIEW,
    Node,
    broadcast,
    cast,
    move,
    permute,
    reduce,
    reshape,
)
from metalloid.arrays.ir.ops import CAST, OPS, WHERE, Op
from metalloid.arrays.ir.primitives import bind
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.arrays.ir.views import full_slices
from metalloid.transforms.rules.registry import rule_of
from metalloid.transforms.tangents import added, conjugate, zeros_like

#: An operand and its cotangent.
Share = tuple[Node, "Node | None"]


def pull_back(roots: Sequence[Node | None], cotangents: Sequence[Node],
              inputs: Sequence[Node]) -> list[Node | None]:  # fmt: skip
    """Cotangents of the inputs of linear expressions; None for zero.

    Parameters
    ----------
    roots : sequence of Node or None
        Linear in `inputs`. None for zero.
    cotangents : sequence of Node
        Of the roots.
    """
    linear = set(inputs)
    order = []
    for node in traced_nodes([root for root in roots if root is not None]):
        if node in linear or any(arg in linear for arg in node.args):
            linear.add(node)
            order.append(node)
    shares: dict[Node, list[Node]] = {}
    items: dict[Node, list[Node | None]] = {}  # by primitive with several results
    for root, cotangent in zip(roots, cotangents, strict=True):
        if root is not None:
            shares.setdefault(root, []).append(cotangent)
    is_input = set(inputs)
    for node in reversed(order):
        if node in is_input:
            continue
        total = added(shares.pop(node, []))
        if node in items:
            pairs = _of_primitive(node, items.pop(node), linear)
        elif total is None:
            continue
        elif node.kind is GET_TUPLE_ITEM:
            (primitive,) = node.args
            row = items.setdefault(primitive, [None] * len(primitive.data.results))
            row[node.data] = total
            continue
        elif node.kind is PRIMITIVE:
            pairs = _of_primitive(node, [total], linear)
        else:
            pairs = _of_node(node, total, linear)
        for arg, share in pairs:
            if share is not None and arg in linear:
                shares.setdefault(arg, []).append(share)
    return [added(shares.get(node, [])) for node in inputs]


def _of_primitive(node: Node, cotangents: list[Node | None], linear: set[Node]) -> list[Share]:
    rule = rule_of(node.data.name)
    assert rule.transpose is not None, node
    args = [None if arg in linear else arg for arg in node.args]
    shares = rule.transpose(cotangents, args, node.data.params)
    pairs = zip(node.args, shares, strict=True)
    return [(arg, None if share is None else _of_type(Array(share), arg)) for arg, share in pairs]


def _of_node(node: Node, cotangent: Node, linear: set[Node]) -> list[Share]:
    kind = node.kind
    if kind is ELEMENTWISE:
        return _of_elementwise(node, Array(cotangent), linear)
    if kind is SCATTER_SLICES:
        return list(_of_slices(node, cotangent))
    arg = node.args[0]
    if kind is VIEW:
        return [(arg, view_transpose(arg.shape, node.data, cotangent))]
    if kind is REDUCE:
        assert node.data[0] == "sum", node
        return [(arg, broadcast(cotangent, arg.shape))]
    if kind is GATHER:
        args = [zeros_like(arg), cotangent, *node.args[1:]]
        return [(arg, bind("scatter", args, ("add",), (arg.dtype, arg.shape))[0])]
    raise AssertionError(node)


def _of_elementwise(node: Node, cotangent: Array, linear: set[Node]) -> list[Share]:
    op, args = node.data, node.args
    if op is CAST:
        (arg,) = args
        if kind_of(node.dtype) == "c" and kind_of(arg.dtype) != "c":
            cotangent = cotangent.real
        return [(arg, cast(cotangent._node, arg.dtype))]
    shares = _ELEMENTWISE[op](cotangent, *(None if arg in linear else Array(arg) for arg in args))
    pairs = zip(args, shares, strict=True)
    return [(arg, None if share is None else _of_type(share, arg)) for arg, share in pairs]


def _of_type(share: Array, arg: Node) -> Node:
    """A cotangent of an operand's type; complex ones of real operands have a real part only."""
    if kind_of(share.dtype) == "c" and kind_of(arg.dtype) != "c":
        share = share.real
    return cast(share._node, arg.dtype)


def _product(ct: Array, x: Array | None, y: Array | None) -> tuple[Array | None, Array | None]:
    return None if y is None else ct * conjugate(y), None if x is None else ct * conjugate(x)


def _choice(
    ct: Array, condition: Array, x: Array | None, y: Array | None
) -> tuple[Array | None, ...]:
    return None, where(condition, ct, 0), where(condition, 0, ct)


#: By linear operation: from the cotangent and the operands, None for linear ones, to the
#: cotangents of the operands.
_ELEMENTWISE: dict[Op, Callable[..., tuple[Array | None, ...]]] = {
    OPS["add"]: lambda ct, x, y: (ct, ct),
    OPS["subtract"]: lambda ct, x, y: (ct, -ct),
    OPS["negative"]: lambda ct, x: (-ct,),
    OPS["positive"]: lambda ct, x: (ct,),
    OPS["multiply"]: _product,
    OPS["divide"]: lambda ct, x, y: (ct / conjugate(y), None),
    OPS["real"]: lambda ct, x: (ct,),
    OPS["imag"]: lambda ct, x: (ct * 1j,),
    OPS["conj"]: lambda ct, x: (conjugate(ct),),
    WHERE: _choice,
}


def view_transpose(shape: Ints, view_op: ViewOp, cotangent: Node) -> Node:
    """The cotangent of the operand of a view, which has a shape."""
    kind, numbers = view_op
    if kind == "reshape":
        return reshape(cotangent, shape)
    if kind == "permute":
        return permute(cotangent, tuple(numbers.index(k) for k in range(len(numbers))))
    if kind == "broadcast":
        missing = len(numbers) - len(shape)
        axes = tuple(
            k for k, n in enumerate(numbers) if k < missing or (shape[k - missing] == 1 != n)
        )
        return reshape(reduce(cotangent, "sum", axes) if axes else cotangent, shape)
    return _overwritten(zeros_like(cotangent, shape), view_op, cotangent)


def _overwritten(node: Node, region: ViewOp, new: Node) -> Node:
    """A copy with new elements in a slice."""
    full = ViewOp("slice", tuple(n for row in full_slices(node.shape) for n in row))
    return Node(SCATTER_SLICES, (full, region), (node, new), node.dtype, node.shape, node.device)


def _of_slices(node: Node, cotangent: Node) -> Iterator[Share]:
    """Later operands overwrite earlier ones, whose cotangents are zero there."""
    regions = node.data
    for k in reversed(range(len(node.args))):
        yield node.args[k], move(cotangent, regions[k])
        if k and any(_overlap(regions[k], earlier) for earlier in regions[:k]):
            cotangent = _overwritten(cotangent, regions[k], zeros_like(node.args[k]))


def _overlap(a: ViewOp, b: ViewOp) -> bool:
    """Whether two slices may have an element in common."""
    rows = [zip(*[iter(op.numbers)] * 3, strict=True) for op in (a, b)]
    for (start, step, count), (other, gap, number) in zip(*rows, strict=True):
        if not count or not number:
            return False
        ends, others = (start, start + step * (count - 1)), (other, other + gap * (number - 1))
        if max(ends) < min(others) or max(others) < min(ends):
            return False
    return True
