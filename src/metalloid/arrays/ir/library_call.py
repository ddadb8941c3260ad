"""Kernels of `.metal` files as nodes: a plan launches them like the kernels that it generates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import LIBRARY_CALL, Node
from metalloid.runtime.launch.program import Size


@dataclass(frozen=True)
class LibraryLaunch:
    """A launch of a kernel whose statements call functions of a `.metal` file.

    Buffers are numbered: operands, the result, then temporary buffers. In the statements,
    those that are read are called ``x0``, ``x1`` and so on; the others ``out``, ``out1`` and so on.

    Attributes
    ----------
    name : str
    body : str
        Statements.
    files : tuple of str
        Names of the Metal sources that they call.
    reads, writes : tuple of int
        Buffers.
    numbers : tuple of (str, int)
        Members of ``params``, of the type ``uint``.
    threads : tuple of int
    group_size : tuple of int or None
    uses_lanes : bool
        Whether threads of a group are told by `simdgroup` and `lane`; otherwise by `thread_`, which
        does not fix the number of lanes.
    aligned_to : int
        If not 0, statements read a constant `is_aligned`: whether the operands that the launch
        reads begin at a multiple of so many elements.
    constants : tuple of int
        Those of `reads` by their position that all threads read at the same addresses: they are in
        the address space ``constant``.
    max_threads : int or None
        Maximum threads of a threadgroup, on which the number of a thread's registers depends.
    is_divisible : bool
        Whether the grid has one axis, of which statements use `group.x` only, so that launches with
        equal statements may become one.
    """

    name: str
    body: str
    files: tuple[str, ...]
    reads: Ints
    writes: Ints
    numbers: tuple[tuple[str, int], ...]
    threads: Size
    group_size: Size | None = None
    uses_lanes: bool = True
    constants: Ints = ()
    max_threads: int | None = None
    aligned_to: int = 0
    is_divisible: bool = False


@dataclass(frozen=True)
class LibraryCall:
    """Launches that compute a node.

    Attributes
    ----------
    launches : tuple of LibraryLaunch
    temporaries : tuple of (dtype, shape)
    is_update : bool
        Whether the result has the values of the first operand before the launches. That operand is
        not one of the numbered buffers.
    owns_base : bool
        Of an update: whether nothing else refers to the first operand. The launches write to its
        memory then, also if it has a value already.
    """

    launches: tuple[LibraryLaunch, ...]
    temporaries: tuple[tuple[DType, Ints], ...] = ()
    is_update: bool = False
    owns_base: bool = False


def library_call(call: LibraryCall, operands: Sequence[Node], dtype: DType, shape: Ints) -> Node:
    """The node that launches of the library compute from contiguous operands."""
    return Node(LIBRARY_CALL, call, tuple(operands), dtype, shape, operands[0].device)
