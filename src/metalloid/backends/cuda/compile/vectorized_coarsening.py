"""Coarsening along x with 16-byte vector accesses, for kernels with small elements.

A warp whose threads load a byte each requests 32 bytes at a time, and such loads do not saturate
memory however many are in flight. Where adjacent threads in x access contiguous elements,
`coarsening` merges adjacent threads, instead of the same thread of adjacent threadgroups, and
their accesses become 16-byte vectors. Vector accesses require addresses that are multiples of 16,
and threadgroups whose extent in x is a multiple of the factor: each launch checks that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from metalloid.backends.cuda.compile.launch_data import launch_offsets
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import (
    I8,
    I32,
    I64,
    POINTER,
    Float,
    Integer,
    Pointer,
    Type,
    Vector,
)
from metalloid.compiler.transforms.interleave_threads import OfThread

#: The call whose result distinguishes adjacent threads.
THREAD_INDEX = "@llvm.nvvm.read.ptx.sreg.tid.x"
_ACCESS_BYTES = 16
_MIN_SCALAR_BYTES = 4  # elements of this size need no vector accesses
_LANE_FUNCTION = re.compile(r"@mtl_|laneid|activemask")


def is_call(i: Instruction, callee: str) -> bool:
    """Whether an instruction is a call of a function."""
    return i.op == "call" and i.callee == callee


def vectorization_factor(
    function: Function, blocks: list[Block], varying: Set[str], extent_offset: int
) -> tuple[int, set[str]]:
    """The number of elements in a 16-byte access, and the pointers to the elements.

    The number is 1 if vector accesses are not known to be correct or profitable.

    Parameters
    ----------
    blocks : list of Block
        In topological order.
    varying : set of str
        Names of values that vary among adjacent threads.
    extent_offset : int
        Offset of the threadgroup's extent in x in launch_data.
    """
    known = _Analysis(launch_offsets(function), varying)
    min_bytes = _ACCESS_BYTES
    for block in blocks:
        for i in (*block.phis, *block.body):
            if i.op == "call" and _LANE_FUNCTION.search(i.callee):
                return 1, set()
            if i.op not in ("load", "store"):
                known.visit(i)
                continue
            pointer, type_ = i.operands[-1], i.type if i.op == "load" else i.operands[0].type
            if pointer.is_constant:
                return 1, set()
            if not known.varies(pointer):
                known.visit_load(i, extent_offset)
                continue
            size = _element_bytes(type_)
            if not size or known.elements.get(pointer.name) != size:
                return 1, set()
            min_bytes = min(min_bytes, size)
    return (_ACCESS_BYTES // min_bytes if min_bytes < _MIN_SCALAR_BYTES else 1), set(known.elements)


def _element_bytes(type_: Type) -> int:
    """Size of an element of vector accesses; 0 for other types."""
    is_number = isinstance(type_, Float) or (isinstance(type_, Integer) and type_.bits >= 8)
    return type_.size if is_number else 0


class _Analysis:
    """Properties of values; of vectors those of the first component, the one in x.

    Attributes
    ----------
    consecutive : set of str
        Values that are greater by one in the next thread, and start at a multiple of the factor.
    multiples : set of str
        Uniform multiples of the factor.
    elements : dict of int
        Pointers to contiguous elements, with the bytes of an element.
    bases : set of str
        Pointers passed by the launch.
    """

    def __init__(self, launch: dict[str, int], varying: Set[str]) -> None:
        self._launch = launch  # pointers into launch_data, with their offsets
        self._varying, self._uniform = varying, set[str]()
        self.consecutive, self.multiples, self.bases = set[str](), set[str](), set[str]()
        self.elements: dict[str, int] = {}

    def varies(self, value: Value) -> bool:
        """Whether a value is not uniform."""
        return value.name in self._varying and value.name not in self._uniform

    def visit_load(self, i: Instruction, extent_offset: int) -> None:
        """Analyse an access through a uniform pointer."""
        offset = self._launch.get(i.operands[-1].name)
        if isinstance(i.type, Pointer) and offset is not None:
            self.bases.add(i.result)
        elif i.type == I32 and offset == extent_offset:
            self.multiples.add(i.result)

    def visit(self, i: Instruction) -> None:
        """Analyse an instruction that is no memory access."""
        used = i.operands
        if i.op == "getelementptr" and len(used) == 2 and used[1].type == I64:
            if used[1].name in self.consecutive and used[0].name in self.bases:
                self.elements[i.result] = _element_bytes(i.source)
        elif i.op == "addrspacecast" and used[0].name in self.bases:
            self.bases.add(i.result)
        elif is_call(i, THREAD_INDEX) or self._has_property(self.consecutive, i):
            self.consecutive.add(i.result)
        elif not any(map(self.varies, used)) or (
            _is_component(i, "extractelement", (1, 2)) and used[0].name in self.consecutive
        ):
            self._uniform.add(i.result)
            if self._has_property(self.multiples, i):
                self.multiples.add(i.result)

    def _has_property(self, kind: set[str], i: Instruction) -> bool:
        used = [value.name for value in i.operands]
        match i.op:
            case "phi":
                return kind.issuperset(used)
            case "add":  # of two names: a literal need not be a multiple
                return any(
                    left in kind and right in self.multiples for left, right in (used, used[::-1])
                )
            case "mul":
                return kind is self.multiples and not kind.isdisjoint(used)
            case "zext" | "freeze":
                return used[0] in kind
            case "insertelement":
                is_first = _is_component(i, i.op, (0,)) and used[0] == "poison"
                return used[1 if is_first else 0] in kind and (
                    is_first or _is_component(i, i.op, (1, 2))
                )
            case "extractelement":
                return _is_component(i, i.op, (0,)) and used[0] in kind
            case "shufflevector":
                return used[0] in kind and i.mask[0] == 0 and any(i.mask)
        return False


def _is_component(i: Instruction, op: str, components: Sequence[int]) -> bool:
    """Whether an instruction inserts or extracts one of these components of a vector."""
    if i.op != op or i.operands[-1].integer not in components:
        return False
    return op == "extractelement" or (isinstance(i.type, Vector) and i.type.element == I32)


class VectorAccesses:
    """Coarsening along x: indices, and vector accesses of adjacent threads.

    A block runs as many threadgroups as each of its threads runs threads.

    Parameters
    ----------
    element_pointers : set of str
        Pointers to the element of each thread.
    """

    def __init__(self, factor: int, element_pointers: Set[str], names: FreshNames) -> None:
        self._factor, self._element_pointers, self._names = factor, element_pointers, names

    def indices(
        self, launch: Value, first: Value, extent_offset: int
    ) -> tuple[list[Instruction], Value, Value]:
        """The instructions for two indices: of the first thread in its threadgroup, and of that.

        Parameters
        ----------
        launch : Value
            Pointer to launch_data.
        first : Value
            The first threadgroup of a block.
        extent_offset : int
            Offset of the threadgroup's extent in x in launch_data.
        """
        names, factor = self._names, Value(I32, str(self._factor))
        own = Instruction(
            "call", names("%mtl.thread_index"), I32, flags=("tail",), callee=THREAD_INDEX
        )
        wide = Instruction("mul", names("%mtl.wide"), I32, [own.value, factor])
        pointer = Instruction(
            "getelementptr", names("%mtl.extent.pointer"), POINTER,
            [launch, Value(I64, str(extent_offset))], source=I8,
        )  # fmt: skip
        extent = Instruction("load", names("%mtl.extent"), I32, [pointer.value], align=4)
        operands = [wide.value, extent.value]
        group = Instruction("udiv", names("%mtl.group.offset"), I32, operands)
        index = Instruction("urem", names("%mtl.index"), I32, operands)
        own_group = Instruction("add", names("%mtl.group"), I32, [first, group.value])
        added = [own, wide, pointer, extent, group, index, own_group]
        return added, index.value, own_group.value

    def combine(self, i: Instruction, of_thread: OfThread) -> list[Instruction]:
        """A vector access to the elements of all threads; nothing for other instructions."""
        if i.op not in ("load", "store") or i.operands[-1].name not in self._element_pointers:
            return []
        type_ = i.type if i.op == "load" else i.operands[0].type
        vector, pointer = Vector(self._factor, type_), of_thread(i.operands[-1], 0)
        name = self._names("%mtl.vector")
        if i.op == "load":
            wide = Instruction("load", name, vector, [pointer], align=_ACCESS_BYTES)
            return [
                wide,
                *(
                    Instruction(
                        "extractelement", of_thread(i.value, k).name, type_,
                        [wide.value, Value(I64, str(k))],
                    )
                    for k in range(self._factor)
                ),
            ]  # fmt: skip
        joined, combined = Value(vector, "poison"), list[Instruction]()
        for k in range(self._factor):
            operands = [joined, of_thread(i.operands[0], k), Value(I64, str(k))]
            combined.append(Instruction("insertelement", self._names(name), vector, operands))
            joined = combined[-1].value
        store = Instruction("store", operands=[joined, pointer], align=_ACCESS_BYTES)
        return [*combined, store]


def is_aligned(words: Sequence[int]) -> bool:
    """Whether all these addresses are multiples of 16."""
    union = 0
    for word in words:
        union |= word
    return union % _ACCESS_BYTES == 0
