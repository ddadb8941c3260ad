"""Number the convergence points of a kernel: the calls at which threads wait for each other.

Divergent lanes reconverge if the runtime always resumes those first that are earliest in the
program. Addresses of machine code are not that order, as clang may lay out the code after a loop
before it. So each call is preceded by ``__msl_site(n)``. The numbers follow a topological order of
the blocks that keeps loops contiguous: code after a loop has higher numbers than the loop body.
The numbers also distinguish two calls from two copies of one call, which clang may make later.

Within a loop, lanes in earlier iterations are resumed first. Otherwise a lane that skips a call
could reach the call of the next iteration before other lanes have made theirs. So loops count
iterations, and ``__msl_iteration(first, iteration)`` gives, for each loop around a call from the
outermost on, the number of the first call in the loop, and the iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.parser import function_names, parse_function, replace_function
from metalloid.compiler.ir.pass_manager import Pass, run_passes
from metalloid.compiler.ir.types import I32

_EXCHANGE = "@__msl_"  # functions that the runtime offers to kernels
_NOT_WAITING = frozenset(
    f"{_EXCHANGE}{name}"
    for name in ("simd_lane", "simdgroup_index", "log", "assertion_failed", "outside")
)
_SITE, _ITERATION = f"{_EXCHANGE}site", f"{_EXCHANGE}iteration"
_DECLARATIONS = f"\ndeclare void {_SITE}(i32)\ndeclare void {_ITERATION}(i32, i32)\n"

Graph = Mapping[str, Iterable[str]]


@dataclass
class Order:
    """A loop-contiguous order of the nodes of a graph.

    Attributes
    ----------
    nodes : list of str
    loops : dict of set
        The nodes of each loop by its header, outer loops first.
    """

    nodes: list[str] = field(default_factory=list)
    loops: dict[str, set[str]] = field(default_factory=dict)


def number_convergence_points(ir: str, kernel: str) -> str:
    """`ir` with a number before each call of a ``__msl_*`` function that synchronises threads.

    If the kernel calls a function with such calls (recursion prevents inlining), `ir` is unchanged,
    and the runtime uses addresses.

    Parameters
    ----------
    ir : str
        Module with the kernel.
    kernel : str
        Name of its function.
    """
    if kernel not in function_names(ir):
        return ir
    function = parse_function(ir, kernel, retain_hints=True)
    if not any(map(_waits, function.instructions())) or _calls_waiting_function(ir, function):
        return ir
    run_passes(function, CONVERGENCE_POINTS, ConvergenceContext())
    return replace_function(ir, function) + _DECLARATIONS


@dataclass
class ConvergenceContext:
    """The state of this pass: none."""

    valid: set[str] = field(default_factory=set)


def _number_convergence_points(function: Function, context: ConvergenceContext) -> None:
    insert_convergence_points(function, FreshNames(function))


#: On the kernel's function, for the scalar engine with fibres.
CONVERGENCE_POINTS: tuple[Pass[ConvergenceContext], ...] = (
    Pass(
        "number-convergence-points", _number_convergence_points,
        "divergent threads reconverge if those that are earliest in the program go on first",
    ),
)  # fmt: skip


def _waits(instruction: Instruction) -> bool:
    callee = instruction.callee
    return callee.startswith(_EXCHANGE) and callee not in _NOT_WAITING


def _calls_waiting_function(ir: str, function: Function) -> bool:
    called = {i.callee[1:] for i in function.instructions() if i.op == "call"}
    return any(
        _waits(i)
        for name in function_names(ir)
        if name in called and name != function.name
        for i in parse_function(ir, name).instructions()
    )


def insert_convergence_points(function: Function, names: FreshNames) -> None:
    """Insert a number before each call that synchronises threads."""
    blocks = function.blocks
    graph = {name: block.end.labels for name, block in blocks.items()}
    waiting = {name for name, block in blocks.items() if any(map(_waits, block.body))}
    order = loop_contiguous_order(graph, set(graph), function.entry.name)
    iterations: dict[str, list[Instruction]] = defaultdict(
        list
    )  # calls of __msl_iteration, by block
    number = 0
    for name in order.nodes:
        inside = order.loops.get(name, set())
        if not waiting.isdisjoint(inside):
            counter = _count_iterations(blocks[name], graph, inside, names)
            if counter is not None:
                for block in inside:
                    iterations[block].append(_call(_ITERATION, _constant(number + 1), counter))
        body: list[Instruction] = []
        for instruction in blocks[name].body:
            if _waits(instruction):
                number += 1
                body.append(_call(_SITE, _constant(number)))
                body += (call.copy() for call in iterations[name])
            body.append(instruction)
        blocks[name].body = body


def _count_iterations(
    header: Block, graph: Graph, inside: set[str], names: FreshNames
) -> Value | None:
    """Add an iteration counter to a loop; None if the loop has several entries."""
    edges = [(block, target) for block, targets in graph.items() for target in targets]
    if any(block not in inside and target in inside - {header.name} for block, target in edges):
        return None
    predecessors = [block for block, target in edges if target == header.name]
    counter = Value(I32, names("%mtl.iteration"))
    following = Value(I32, names(f"{counter.name}.next"))
    counts = [following if block in inside else _constant(0) for block in predecessors]
    header.phis.append(Instruction("phi", counter.name, I32, counts, labels=predecessors))
    header.body.insert(0, Instruction("add", following.name, I32, [counter, _constant(1)]))
    return counter


def _constant(number: int) -> Value:
    return Value(I32, str(number))


def _call(callee: str, *arguments: Value) -> Instruction:
    return Instruction("call", operands=[*arguments], callee=callee)


def loop_contiguous_order(graph: Graph, region: set[str], entry: str) -> Order:
    """The nodes of `region` in a topological order in which loops are contiguous.

    Without the back edges to its entry, a region consists of strongly connected components. In
    topological order, each is a node, or a loop that is ordered recursively from its header
    (Bourdoncle's weak topological order, 1993).
    """
    edges = {
        node: [target for target in graph[node] if target in region and target != entry]
        for node in region
    }
    components = _components(edges, entry)
    edges = {node: edges[node] for component in components for node in component}  # reachable
    order = Order()
    for component in components:
        head, inside = _header(edges, set(component)), set(component)
        if head in edges[head] or len(component) > 1:
            order.loops[head] = inside
        if len(component) == 1:
            order.nodes += component
        else:
            inner = loop_contiguous_order(graph, inside, head)
            order.nodes += inner.nodes
            order.loops |= inner.loops
    return order


def _header(edges: Graph, loop: set[str]) -> str:
    """The header of a loop: its first node with an edge from outside."""
    entered = {t for node, targets in edges.items() if node not in loop for t in targets}
    return min(entered & loop or loop)


def _components(edges: Graph, entry: str) -> list[list[str]]:
    """Strongly connected components reachable from `entry`, in topological order (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components: list[list[str]] = []
    path = [(entry, iter(edges[entry]))]
    index[entry] = low[entry] = 0
    stack.append(entry)
    on_stack.add(entry)
    while path:
        node, targets = path[-1]
        for target in targets:
            if target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                path.append((target, iter(edges[target])))
                break
            if target in on_stack:
                low[node] = min(low[node], index[target])
        else:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            if low[node] == index[node]:
                component = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == node:
                        break
                components.append(component)
    return components[::-1]
