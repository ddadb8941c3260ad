"""Names that a SPIR-V module imports."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER_WORDS = 5
_BUILTIN = "__spirv_BuiltIn"  # LLVM imports the variable of a built-in
_OP_DECORATE, _LINKAGE_ATTRIBUTES, _IMPORT = 71, 41, 1


def imported_names(module: bytes) -> Iterator[str]:
    """The functions and variables that a module declares and lacks, without those of SPIR-V."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    position = _HEADER_WORDS
    while position < len(words):
        count, opcode = words[position] >> 16, words[position] & 0xFFFF
        operands = words[position + 1 : position + count]
        position += count
        is_linkage = opcode == _OP_DECORATE and operands[1] == _LINKAGE_ATTRIBUTES
        if is_linkage and operands[-1] == _IMPORT:
            text = struct.pack(f"<{len(operands) - 3}I", *operands[2:-1])
            name = text.split(b"\0")[0].decode()
            if not name.startswith(_BUILTIN):
                yield name
