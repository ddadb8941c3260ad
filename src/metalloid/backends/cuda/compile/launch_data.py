"""The only parameter of kernels: launch_data of entry.h, words for parameters and the geometry."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from metalloid.compiler.ir.function import Function, gep_terms
from metalloid.compiler.ir.types import Pointer
from metalloid.msl.signature import Signature

_WORD_BYTES = 8
#: Offsets after the words.
_EXTENT_OFFSET, _UNIFORM_OFFSET = 12, 36


@dataclass(frozen=True)
class LaunchLayout:
    """Layout of a kernel's launch_data, as far as passes depend on it.

    Attributes
    ----------
    words : int
        Of a launch: parameters of the kernel, and more if its accesses are checked.
    constant : set of int
        The words that point to ``constant`` memory.
    """

    words: int
    constant: Set[int] = frozenset()

    @property
    def extent_offset(self) -> int:
        """Offset of the threadgroup's extent in x."""
        return self._size + _EXTENT_OFFSET

    @property
    def uniform_offset(self) -> int:
        """Offset of is_uniform: whether all threadgroups of the grid have the same size."""
        return self._size + _UNIFORM_OFFSET

    @property
    def _size(self) -> int:
        return _WORD_BYTES * max(1, self.words)


def layout_of(signature: Signature, words: int) -> LaunchLayout:
    """The layout for a kernel's parameters, in launches with so many words."""
    constant = (p.position for p in signature.buffers if p.layout.space == "constant")
    return LaunchLayout(words, frozenset(constant))


def launch_offsets(function: Function) -> dict[str, int]:
    """Pointers into launch_data, with their offsets."""
    launch = function.parameters[0].name
    offsets = {launch: 0}
    for i in function.instructions():
        if i.op == "getelementptr" and i.operands[0].name == launch:
            distance, variable = gep_terms(i)
            if not variable:
                offsets[i.result] = distance
    return offsets


def constant_pointers(function: Function, layout: LaunchLayout) -> set[str]:
    """Pointers to ``constant`` memory that the launch passes.

    Address spaces do not distinguish them: ``constant`` and ``device`` memory are both global
    memory on the GPU.
    """
    required = {position * _WORD_BYTES for position in layout.constant}
    offsets = launch_offsets(function)
    return {
        i.result for i in function.instructions()
        if i.op == "load" and isinstance(i.type, Pointer) and not i.ordering
        and offsets.get(i.operands[0].name) in required
    }  # fmt: skip
