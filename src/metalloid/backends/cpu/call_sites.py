"""Number the calls at which threads wait for each other, in the order of the program.

Lanes that diverge meet again if the runtime always lets those go first that are earlier in the
program. Addresses of the machine code are not that order: clang lays out a loop so that what
follows it may come before it. So each call is preceded by ``__msl_site(n)``, with n counted in a
topological order of the blocks that keeps every loop together: what stands behind a loop has a
higher number than all of its body. It also tells copies of one call, which clang may make later,
from two calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_FUNCTION = re.compile(r"^define [^\n]*@(\w+)\([^\n]*\{\n(.*?)^\}", re.M | re.S)
_LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):', re.M)
_TARGET = re.compile(r'label %([\w.$-]+|"[^"]*")')
_WAITING_CALL = re.compile(
    r"^( +)(?=(?:%\S+ = )?(?:tail )?call [^\n]*@__msl_"
    r"(?!simd_lane\b|simdgroup_index\b|log\b|assertion_failed\b))",
    re.M,
)
_DECLARATION = "\ndeclare void @__msl_site(i32)\n"

Graph = Mapping[str, Iterable[str]]


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
    graph = {name: _TARGET.findall(text) for name, text in blocks.items()}
    number = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f"{match[1]}call void @__msl_site(i32 {number})\n{match[1]}"

    entry = next(iter(blocks))
    for name in loop_contiguous_order(graph, set(graph), entry):
        blocks[name] = _WAITING_CALL.sub(numbered, blocks[name])
    body = "".join(blocks.values())
    return ir[: function.start(2)] + body + ir[function.end(2) :] + _DECLARATION


def _blocks(body: str) -> dict[str, str]:
    """Text of each block by label, in the order of the text."""
    starts = [(match.start(), match[1]) for match in _LABEL.finditer(body)]
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, ""))  # an entry block without a label
    ends = [start for start, _ in starts[1:]] + [len(body)]
    return {name: body[start:end] for (start, name), end in zip(starts, ends, strict=True)}


def loop_contiguous_order(graph: Graph, region: set[str], entry: str) -> list[str]:
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
    order: list[str] = []
    for component in components:
        if len(component) == 1:
            order += component
        else:
            head = _head(edges, set(component))
            order += loop_contiguous_order(graph, set(component), head)
    return order


def _head(edges: Graph, loop: set[str]) -> str:
    """Where a loop is entered."""
    entered = {t for node, targets in edges.items() if node not in loop for t in targets}
    return min(entered & loop)


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
