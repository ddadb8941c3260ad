"""The state that the vectoriser's passes share besides the function, and their result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.transforms.callees import (
    NO_CALLEES,
    Callee,
    Callees,
)
from metalloid.compiler.vectorize.atomics.accumulators import Accumulators
from metalloid.compiler.vectorize.atomics.private_sums import SumGroup
from metalloid.compiler.vectorize.memory.interleave_groups import Group
from metalloid.compiler.vectorize.spec import KernelABI, VectorSpec


@dataclass(frozen=True)
class VectorizedFunction:
    """The result of `vectorize`.

    Attributes
    ----------
    text : str
        The function.
    declarations : dict of str
        Declarations of the functions it calls, by name.
    frame_bytes : int
        Size of a simdgroup's frame.
    successors : tuple of int or None
        The value that each region's function (``name.0``, ``name.1`` ...) returns, if it is known.
    common : tuple of str
        Types of workgroup-uniform values.
    live_in, defs : tuple of set of int
        Indices of those that each region reads, and that it writes.
    is_uniform : bool
        Whether all simdgroups reach the same barriers, with all their lanes.
    streamable : int
        Bytes of cache that a thread's non-temporal stores, if they were ordinary ones, would need.
    accumulators : Accumulators or None
        Of atomic updates, if the form has any.
    """

    text: str
    declarations: dict[str, str]
    frame_bytes: int
    successors: tuple[int | None, ...]
    common: tuple[str, ...]
    live_in: tuple[set[int], ...]
    defs: tuple[set[int], ...]
    is_uniform: bool
    streamable: int
    accumulators: Accumulators | None


@dataclass(frozen=True)
class RowParameters:
    """Parameters of coarsening over rows of threads: see `transforms.coarsen`.

    Attributes
    ----------
    along : frozenset of str
        Parameters that grow by one from row to row.
    across : frozenset of str
        Parameters by which lanes differ.
    index : str
        Parameter that is a thread's index in its threadgroup.
    max_carried : int
        Maximum loop-carried values per lane, over all rows.
    """

    along: frozenset[str]
    across: frozenset[str]
    index: str
    max_carried: int


@dataclass
class Context:
    """The state that the passes share besides the function.

    Attributes
    ----------
    callees : mapping of Callee
        Functions that have a vector form of their own.
    abi : KernelABI, optional
        That of a kernel.
    callee : Callee, optional
        The function itself, if kernels call it.
    spec : VectorSpec, optional
        How the vector code is to look.
    row_parameters : RowParameters, optional
        Of a kernel that is to be coarsened.
    rows : int
        Rows that a thread does the work of.
    """

    callees: Callees = field(default_factory=lambda: NO_CALLEES)
    abi: KernelABI | None = None
    callee: Callee | None = None
    spec: VectorSpec | None = None
    row_parameters: RowParameters | None = None
    rows: int = 1
    valid: set[str] = field(default_factory=set)
    _graph: Graph | None = None
    _divergence: Divergence | None = None
    common: list[Value] | None = None
    groups: dict[Instruction, tuple[Group, int]] = field(default_factory=dict)
    sums: dict[Instruction, tuple[SumGroup, int]] = field(default_factory=dict)
    result: VectorizedFunction | None = None

    @property
    def kernel(self) -> KernelABI:
        """The ABI, in pipelines of kernels."""
        assert self.abi is not None
        return self.abi

    @property
    def form(self) -> VectorSpec:
        """The spec, once there is one."""
        assert self.spec is not None
        return self.spec

    @property
    def graph(self) -> Graph:
        """The analysis ``cfg``."""
        assert self._graph is not None
        return self._graph

    @property
    def divergence(self) -> Divergence:
        """The analysis ``divergence``."""
        assert self._divergence is not None
        return self._divergence

    def parameters(self, function: Function, positions: Iterable[int]) -> set[str]:
        """Names of the parameters at some positions."""
        return {function.parameters[position].name for position in positions}
