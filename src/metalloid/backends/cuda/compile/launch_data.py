"""The only parameter of kernels: launch_data of entry.h, words for parameters and the geometry."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function, gep_terms
from metalloid.compiler.ir.types import Pointer
from metalloid.msl.signature import Signature

_WORD_BYTES = 8
#: Offsets after the words.
_EXTENT_OFFSET, _UNIFORM_OFFSET = 12, 36


def extent_offset(signature: Signature) -> int:
    """Offset of the threadgroup's extent in x."""
    return _words_size(signature) + _EXTENT_OFFSET


def uniform_offset(signature: Signature) -> int:
    """Offset of is_uniform: whether all threadgroups of the grid have the same size."""
    return _words_size(signature) + _UNIFORM_OFFSET


def _words_size(signature: Signature) -> int:
    return _WORD_BYTES * max(1, len(signature.sources))


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


def constant_pointers(function: Function, signature: Signature) -> set[str]:
    """Pointers to ``constant`` memory that the launch passes.

    Address spaces do not distinguish them: ``constant`` and ``device`` memory are both global
    memory on the GPU.
    """
    positions = {p.position for p in signature.buffers if p.layout.space == "constant"}
    wanted = {position * _WORD_BYTES for position in positions}
    offsets = launch_offsets(function)
    return {
        i.result for i in function.instructions()
        if i.op == "load" and isinstance(i.type, Pointer) and not i.ordering
        and offsets.get(i.operands[0].name) in wanted
    }  # fmt: skip
