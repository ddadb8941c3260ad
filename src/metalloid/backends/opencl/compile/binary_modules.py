"""Imports of a SPIR-V module, and nonsense that LLVM's back end has written."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER_WORDS = 5
_BUILTIN = "__spirv_BuiltIn"  # LLVM imports the variable of a built-in
_OP_DECORATE, _LINKAGE_ATTRIBUTES, _IMPORT = 71, 41, 1
#: Where literal indices begin in the operands of OpCompositeExtract and OpCompositeInsert.
_INDICES = {81: 3, 82: 4}
_MAX_INDEX = 1 << 16  # more elements than any value of a kernel has


def _instructions(module: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Opcodes and operands."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    position = _HEADER_WORDS
    while position < len(words):
        count, opcode = words[position] >> 16, words[position] & 0xFFFF
        yield opcode, words[position + 1 : position + count]
        position += count


def imported_names(module: bytes) -> Iterator[str]:
    """The functions and variables that a module declares and lacks, without those of SPIR-V."""
    for opcode, operands in _instructions(module):
        is_linkage = opcode == _OP_DECORATE and operands[1] == _LINKAGE_ATTRIBUTES
        if is_linkage and operands[-1] == _IMPORT:
            text = struct.pack(f"<{len(operands) - 3}I", *operands[2:-1])
            name = text.split(b"\0")[0].decode()
            if not name.startswith(_BUILTIN):
                yield name


def has_impossible_indices(module: bytes) -> bool:
    """Whether an element that cannot be is read or written.

    LLVM's back end writes a number of its memory in place of an index that is no constant to it,
    such as that of a thread's position, in silence.
    """
    return any(
        index >= _MAX_INDEX
        for opcode, operands in _instructions(module)
        if opcode in _INDICES
        for index in operands[_INDICES[opcode] :]
    )
