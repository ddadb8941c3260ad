"""Products of matrices in a plan: who makes one, and what else its kernel does.

What is computed element by element of a product becomes part of its kernel, as long as nobody else
needs the product. So does what a factor is made of, if it is cheap: it is computed again for every
tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metalloid.arrays.layout import Movement, contiguous, moved_through
from metalloid.arrays.node import COUNT, GATHER, MAP, MEMORY, MOVE, NUMBER, PRODUCT, REDUCE
from metalloid.arrays.product_rule import (
    AUTO,
    FOREIGN,
    TENSOR_CORES,
    TILE,
    is_turned,
    shape_of_work,
    way_of,
)
from metalloid.arrays.steps import Factor, FusedKernel, ProductKernel, Reason
from metalloid.arrays.trace import MOST_LOADS, Trace, plain
from metalloid.arrays.walk import ends_below

if TYPE_CHECKING:
    from metalloid.arrays.plan import Planner

#: What a factor that is computed again for every tile may take: additions, and reads of memory.
_CHEAP, _FEW_LOADS = 4, 4
#: What may be read of what is made of a product.
_LOADS = MOST_LOADS - 2 * _FEW_LOADS


def way(planner: Planner, place: int, is_more: bool) -> str:
    """Who makes a product, of which its kernel might make more (`is_more`)."""
    nodes, args = planner.graph.nodes, planner.graph.args
    node = nodes[place]
    if node.data.way != AUTO:
        return str(node.data.way)
    fused = [node.size] if is_more else []
    for arg in args[place]:
        while nodes[arg].kind is MOVE:
            (arg,) = args[arg]
        if nodes[arg].kind is MAP and arg not in planner.stored and _is_cheap(planner, arg, 2):
            fused.append(nodes[arg].size)
    left, right = (nodes[arg] for arg in args[place])
    shape = shape_of_work(node.shape, right)
    depth = left.shape[-1]
    return way_of(node.device, node.dtype, shape, depth, fused, is_turned(right))


def product_below(planner: Planner, place: int) -> int | None:
    """A product of which a node is made element by element, so that one kernel may make both."""
    nodes = planner.graph.nodes
    root = nodes[place]
    own = plain(contiguous(root.shape)), 0
    ends = list(ends_below(planner.graph, place, planner.stored))
    for at, _, layout in ends:
        node = nodes[at]
        if node.kind is not PRODUCT or at in planner.stored or layout is None:
            continue
        is_same = node.size == root.size and (plain(layout), layout.start) == own
        if is_same and way(planner, at, True) not in FOREIGN:
            break
    else:
        return None
    back = Movement("reshape", node.shape)
    fits = node.shape == root.shape or all(
        _has_layout(planner, end.place, (*end.moves, back)) for end in ends
    )
    return at if fits else None


def _has_layout(planner: Planner, place: int, moves: Sequence[Movement]) -> bool:
    """Whether strides can express a value in memory after movements."""
    node = planner.graph.nodes[place]
    in_memory = place in planner.stored or node.kind in (MEMORY, COUNT)
    layout = planner.where(place)[1] if in_memory else contiguous(node.shape)
    return moved_through(layout, moves) is not None


def compute(planner: Planner, place: int, product: int, out: int) -> None:
    """The step for a node made of a product, with all that comes before it."""
    nodes = planner.graph.nodes
    shape = nodes[product].shape
    moves = () if nodes[place].shape == shape else (Movement("reshape", shape),)

    def attempt() -> tuple[Trace, int]:
        trace = Trace(planner, shape, product=product, most_loads=_LOADS)
        return trace, trace.value(place, moves)

    trace, result = planner.tried(attempt, lambda: planner.split(place, _LOADS))
    strides = plain(contiguous(shape))
    entries = tuple(trace.entries)
    step = FusedKernel(shape, (), entries, result, out, strides)
    if product in trace.touched:
        across = tuple(-(-n // TILE) for n in reversed(shape[-2:]))
        by = way(planner, product, True)
        sides = zip(planner.graph.args[product], across, strict=True)
        factors = tuple(_factor(planner, trace, arg, times, by) for arg, times in sides)
        step = ProductKernel(shape, (), entries, result, out, strides, factors=factors,
                             way=by)  # fmt: skip
    planner.touched.append(trace.touched)
    if all(shape):
        planner.steps.append(step)


def _factor(planner: Planner, kernel: Trace, place: int, times: int, by: str) -> Factor:
    """One side of a product, whose every element is read so many times."""
    # Only copies of what lies in memory keep up with tensor cores.
    is_slow = by == TENSOR_CORES and times > 1 and _is_computed(planner, place)
    if is_slow or not _is_cheap(planner, place, times):
        planner.store(place, Reason.FACTOR)

    def attempt() -> tuple[Trace, int]:
        trace = Trace(planner, planner.graph.nodes[place].shape)
        return trace, trace.value(place)

    trace, result = planner.tried(attempt, lambda: planner.split(place))
    kernel.touched |= trace.touched
    return Factor(trace.space, tuple(trace.entries), result)


def _is_computed(planner: Planner, place: int) -> bool:
    while planner.graph.nodes[place].kind is MOVE and place not in planner.stored:
        (place,) = planner.graph.args[place]
    return place not in planner.stored and planner.graph.nodes[place].kind is not MEMORY


def _is_cheap(planner: Planner, place: int, times: int) -> bool:
    """Whether a factor may be computed where it is read."""
    below, pending = {place}, [place]
    cost = loads = 0
    while pending:
        at = pending.pop()
        node = planner.graph.nodes[at]
        if at in planner.stored or node.kind not in (MAP, MOVE, REDUCE, GATHER):
            loads += node.kind is not NUMBER
            continue
        if node.kind in (REDUCE, GATHER):
            return False
        cost += node.data.cost if node.kind is MAP else 0
        new = set(planner.graph.args[at]) - below
        below |= new
        pending += new
    return loads <= _FEW_LOADS and (cost <= _CHEAP or times == 1)
