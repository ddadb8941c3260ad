"""The interface of the planner for kernel builders and the fusion of matrix products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, Layout, ViewOp
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.schedule import BufferSpec, MaterializeReason, Step
from metalloid.runtime.devices.traits import DeviceTraits

T = TypeVar("T")


class PlanContext(Protocol):
    """A plan in the making. `Planner` is the one implementation.

    Attributes
    ----------
    graph : LinearizedGraph
    sources : list of BufferSpec
    steps : list of Step
    materialized : dict
        By node: buffer and layout of what has memory.
    partials : dict
        By reduction: buffer and layout of one value per chunk, along a last axis.
    fused_nodes : list of set of int
        By step: the nodes that it computes.
    uses : Counter
        By node, the number of its users; the caller is one of those of roots.
    traits : DeviceTraits
    """

    graph: LinearizedGraph
    sources: list[BufferSpec]
    steps: list[Step]
    materialized: dict[int, tuple[int, Layout]]
    partials: dict[int, tuple[int, Layout]]
    fused_nodes: list[set[int]]
    uses: Counter[int]
    traits: DeviceTraits

    def location(self, index: int) -> tuple[int, Layout]:
        """Buffer and layout of a materialized node."""

    def can_fuse(self, index: int) -> bool:
        """Whether the kernel that uses a reduction may compute it."""

    def store(self, index: int, reason: MaterializeReason = ...) -> None:
        """Materialize a node."""

    def store_copy(self, index: int) -> None:
        """Materialize a node contiguously, even if it has memory already."""

    def new_buffer(self, dtype: DType, shape: Ints, reason: MaterializeReason) -> int:
        """A buffer that the plan allocates."""

    def compute_into(self, index: int, out: int, region: Layout) -> None:
        """Compute a node into a region of a buffer, element by element."""

    def layout_through(self, index: int, moves: Sequence[ViewOp | int]) -> Layout | None:
        """Layout of a node after views, as if it were contiguous."""

    def split(self, index: int, max_loads: int = ...) -> None:
        """Materialize the largest part of an expression that fits into one kernel."""

    def retry_after_split(self, attempt: Callable[[], T], split: Callable[[], None]) -> T:
        """Call `attempt` until it succeeds; materialize values after each failure."""
