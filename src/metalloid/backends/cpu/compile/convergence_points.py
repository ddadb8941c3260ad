"""Number the calls at which threads wait for each other, in the order of the program.

Lanes that diverge meet again if the runtime always lets those go first that are earlier in the
program. Addresses of the machine code are not that order: clang lays out a loop so that what
follows it may come before it. So each call is preceded by ``__msl_site(n)``, with n counted in a
topological order of the blocks that keeps every loop together: what stands behind a loop has a
higher number than all of its body. It also tells copies of one call, which clang may make later,
from two calls.

In a loop those go first that are in an earlier round: who skips a call behind a branch would
otherwise be at the next round's before the others have made it. So loops count their rounds, and
``__msl_round(first, round)`` says of each loop around a call, from the outermost on, the number of
the first call in it and the round.
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
_BEGINNING = re.compile(r"[^\n]*\n(?: +%\S+ = phi [^\n]*\n)*")  # of a block: its label and phis

Graph = Mapping[str, Iterable[str]]


@dataclass
class Order:
    """What `loop_contiguous_order` finds.

    Attributes
    ----------
    nodes : list of str
    loops : dict of set
        The nodes of each loop by the one where it is entered, outer loops first.
    """

    nodes: list[str] = field(default_factory=list)
    loops: dict[str, set[str]] = field(default_factory=dict)


def number_call_sites(ir: str, kernel: str) -> str:
    """`ir` with a number before each call of a ``__msl_*`` function that makes a thread wait.

    A kernel that calls another function which waits (recursion keeps clang from inlining it) is
    returned as it is: the runtime then goes by addresses.

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
    rounds: dict[str, str] = defaultdict(str)  # what is said in each block of the loops around it
    number = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        said = f"call void @__msl_site(i32 {number})\n{rounds[name]}"
        return match[1] + said.replace("\n", f"\n{match[1]}")

    for name in order.nodes:
        inside = order.loops.get(name, set())
        if any(_WAITING_CALL.search(blocks[block]) for block in inside):
            counter = f"%mtl.round.{number}.{len(inside)}"
            if _count_rounds(blocks, graph, name, inside, counter):
                for block in inside:
                    rounds[block] += f"call void @__msl_round(i32 {number + 1}, i32 {counter})\n"
        blocks[name] = _WAITING_CALL.sub(numbered, blocks[name])


def _count_rounds(
    blocks: dict[str, str], graph: Graph, head: str, inside: set[str], counter: str
) -> bool:
    """Let a loop count its rounds; False if it has more entries, or one from a nameless block."""
    ways = [(block, target) for block, targets in graph.items() for target in targets]
    if any(block not in inside and target in inside - {head} for block, target in ways):
        return False
    origins = [block for block, target in ways if target == head]
    if "" in origins:
        return False
    counted = ", ".join(
        f"[ {f'{counter}.next' if block in inside else 0}, %{block} ]" for block in origins
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
    """The nodes of `region` in a topological order, with the nodes of each loop side by side.

    Without the edges back to its entry, a region falls into strongly connected components. Taken in
    topological order each is a node, or a loop to be ordered in the same way from where it is
    entered. (Bourdoncle's weak topological order, 1993.)
    """
    edges = {
        node: [target for target in graph[node] if target in region and target != entry]
        for node in region
    }
    components = _components(edges, entry)
    edges = {node: edges[node] for component in components for node in component}  # reachable
    order = Order()
    for component in components:
        head, inside = _head(edges, set(component)), set(component)
        if head in edges[head] or len(component) > 1:
            order.loops[head] = inside
        if len(component) == 1:
            order.nodes += component
        else:
            inner = loop_contiguous_order(graph, inside, head)
            order.nodes += inner.nodes
            order.loops |= inner.loops
    return order


def _head(edges: Graph, loop: set[str]) -> str:
    """Where a loop, or a node, is entered."""
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
