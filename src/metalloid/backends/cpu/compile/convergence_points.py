"""Number the convergence points of a kernel: the calls at which threads wait for each other.

Divergent lanes reconverge if the runtime always resumes those first that are earliest in the
program. Addresses of machine code are not that order, as clang may lay out the code after a loop
before it. So each call is preceded by ``__msl_site(n)``. The numbers follow a topological order of
the blocks that keeps loops contiguous: code after a loop has higher numbers than the loop body.
The numbers also distinguish two calls from two copies of one call, which clang may make later.

Within a loop, lanes in earlier iterations are resumed first. Otherwise a lane that skips a call
could reach the call of the next iteration before other lanes have made theirs. So loops count
iterations, and ``__msl_round(first, iteration)`` gives, for each loop around a call from the
outermost on, the number of the first call in the loop, and the iteration.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^define [^\n]*@(\w+)\([^\n]*\{\n(.*?)^\}", re.M | re.S)
_LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):', re.M)
_TARGET = re.compile(r'label %([\w.$-]+|"[^"]*")')
_WAITING_CALL = re.compile(
    r"^( +)(?=(?:%\S+ = )?(?:tail )?call [^\n]*@__msl_"
    r"(?!simd_lane\b|simdgroup_index\b|log\b|assertion_failed\b))",
    re.M,
)
_DECLARATIONS = "\ndeclare void @__msl_site(i32)\ndeclare void @__msl_round(i32, i32)\n"
_BEGINNING = re.compile(r"[^\n]*\n(?: +%\S+ = phi [^\n]*\n)*")  # label and phis of a block

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
    waiting = {
        match[1]: match for match in _FUNCTION.finditer(ir) if _WAITING_CALL.search(match[2])
    }
    function = waiting.pop(kernel, None)
    if function is None or any(f"@{name}(" in function[2] for name in waiting):
        return ir
    blocks = _blocks(function[2])
    _number(blocks)
    body = "".join(blocks.values())
    return ir[: function.start(2)] + body + ir[function.end(2) :] + _DECLARATIONS


def _number(blocks: dict[str, str]) -> None:
    graph = {name: _TARGET.findall(text) for name, text in blocks.items()}
    order = loop_contiguous_order(graph, set(graph), next(iter(blocks)))
    iterations: dict[str, str] = defaultdict(str)  # calls of __msl_round, by block
    number = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        calls = f"call void @__msl_site(i32 {number})\n{iterations[name]}"
        return match[1] + calls.replace("\n", f"\n{match[1]}")

    for name in order.nodes:
        inside = order.loops.get(name, set())
        if any(_WAITING_CALL.search(blocks[block]) for block in inside):
            counter = f"%mtl.round.{number}.{len(inside)}"
            if _count_iterations(blocks, graph, name, inside, counter):
                for block in inside:
                    call = f"call void @__msl_round(i32 {number + 1}, i32 {counter})\n"
                    iterations[block] += call
        blocks[name] = _WAITING_CALL.sub(numbered, blocks[name])


def _count_iterations(
    blocks: dict[str, str], graph: Graph, head: str, inside: set[str], counter: str
) -> bool:
    """Add an iteration counter to a loop; False if it has several entries or unnamed preheaders."""
    edges = [(block, target) for block, targets in graph.items() for target in targets]
    if any(block not in inside and target in inside - {head} for block, target in edges):
        return False
    predecessors = [block for block, target in edges if target == head]
    if "" in predecessors:
        return False
    counted = ", ".join(
        f"[ {f'{counter}.next' if block in inside else 0}, %{block} ]" for block in predecessors
    )
    beginning = _BEGINNING.match(blocks[head])
    assert beginning is not None
    blocks[head] = (
        f"{beginning[0]}  {counter} = phi i32 {counted}\n"
        f"  {counter}.next = add i32 {counter}, 1\n{blocks[head][beginning.end() :]}"
    )
    return True


def _blocks(body: str) -> dict[str, str]:
    """Text of each block by label, in the order of the text."""
    starts = [(match.start(), match[1]) for match in _LABEL.finditer(body)]
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, ""))  # an entry block without a label
    ends = [start for start, _ in starts[1:]] + [len(body)]
    return {name: body[start:end] for (start, name), end in zip(starts, ends, strict=True)}


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
