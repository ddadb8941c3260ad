"""Functions of the host in the graph: what a well-kept library does better than a kernel of ours.

Their arguments are NumPy arrays on the memory of the nodes; their results become memory of nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metalloid.array.build import from_numpy
from metalloid.array.layout import Ints, reach
from metalloid.array.memory import Memory
from metalloid.array.node import CALL, PART, Node
from metalloid.array.types import DType
from metalloid.runtime.device import Device


@dataclass(frozen=True)
class HostCall:
    """A function from NumPy arrays to NumPy arrays.

    Attributes
    ----------
    function : callable
        Called with the arrays and then the parameters. It is part of the key of a plan: a function
        of a module, not one made for the occasion.
    parameters : tuple
    results : tuple of (dtype, shape)
    parts : list of weakref.ref
        The nodes of the results: whoever still holds one has its values when another was wanted.
    """

    function: Callable[..., Any]
    parameters: tuple[Any, ...]
    results: tuple[tuple[DType, Ints], ...]
    parts: list[weakref.ref[Node]] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.function.__name__.strip("_")

    def run(self, args: Sequence[Node], device: Device) -> list[Memory]:
        """Call it, and keep what it returns."""
        with np.errstate(all="ignore"):  # as in kernels
            results = self.function(*map(to_host, args), *self.parameters)
            if not isinstance(results, tuple):
                results = (results,)
            arrays = [
                np.ascontiguousarray(value, dtype).reshape(shape)
                for value, (dtype, shape) in zip(results, self.results, strict=True)
            ]
        memories = []
        for array in arrays:
            node = from_numpy(array, device, copy=False)
            assert node.memory is not None
            memories.append(node.memory)
            part = self.parts[len(memories) - 1]()
            if part is not None:
                part.become(node.memory, node.layout)
        return memories


def to_host(node: Node) -> np.ndarray:
    """The values of an evaluated node: the same memory where Python sees it."""
    assert node.memory is not None
    if node.device.name == "cpu":
        return node.memory.host_view(node.dtype, node.shape, *node.data)
    low, high = reach(node.layout)
    window = np.empty(high - low + 1, node.dtype)
    at = node.memory.bound.address + low * node.dtype.itemsize
    node.device.copy_out(at, window.view(np.uint8).data)
    strides = tuple(step * node.dtype.itemsize for step in node.data[0])
    first = window[node.data[1] - low :]
    return np.lib.stride_tricks.as_strided(first, node.shape, strides)


def host_call(function: Callable[..., Any], args: Sequence[Node], parameters: tuple[Any, ...],
              *results: tuple[DType, Ints]) -> tuple[Node, ...]:  # fmt: skip
    """Nodes of what a function of the host returns."""
    call = HostCall(function, parameters, results)
    device = args[0].device
    node = Node(CALL, call, tuple(args), results[0][0], results[0][1], device)
    parts = tuple(
        Node(PART, k, (node,), dtype, shape, device) for k, (dtype, shape) in enumerate(results)
    )
    call.parts.extend(map(weakref.ref, parts))
    return parts
