"""Object files as linkers see them: their format and machine, the symbols they define and need."""

import struct
from typing import NamedTuple

_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
_MACH_O_MACHINES = {0x01000007: "x86_64", 0x0100000C: "aarch64"}


class ObjectFile(NamedTuple):
    """The header of a file, and its symbols."""

    kind: str  # "ELF" or "Mach-O"
    machine: str
    is_relocatable: bool
    defined: set  # global names
    undefined: set


def read(code):
    """Look into an object file."""
    return _mach_o(code) if code[:4] == b"\xcf\xfa\xed\xfe" else _elf(code)


def _text(table, at):
    return table[at : table.index(b"\0", at)].decode()


def _elf(code):
    assert code[:6] == b"\x7fELF\x02\x01"  # 64 bits, little end first
    kind, machine = struct.unpack_from("<HH", code, 16)
    (sections,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + n * size) for n in range(count)]
    defined, undefined = set(), set()
    for _, section_kind, _, _, start, length, link, *_ in headers:
        if section_kind != 2:  # SHT_SYMTAB
            continue
        _, _, _, _, names, names_length, *_ = headers[link]
        table = code[names : names + names_length]
        for at in range(start, start + length, 24):
            name, info, _, section = struct.unpack_from("<IBBH", code, at)
            if info >> 4:  # not local
                (defined if section else undefined).add(_text(table, name))
    return ObjectFile("ELF", _ELF_MACHINES[machine], kind == 1, defined, undefined)


def _mach_o(code):
    machine, _, kind, count = struct.unpack_from("<IIII", code, 4)
    defined, undefined, at = set(), set(), 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:  # LC_SYMTAB
            start, symbols, names, length = struct.unpack_from("<IIII", code, at + 8)
            table = code[names : names + length]
            for offset in range(start, start + 16 * symbols, 16):
                name, flags = struct.unpack_from("<IB", code, offset)
                if flags & 1:  # external
                    symbol = _text(table, name)
                    assert symbol.startswith("_"), symbol
                    (defined if flags & 0x0E else undefined).add(symbol[1:])
        at += size
    return ObjectFile("Mach-O", _MACH_O_MACHINES[machine], kind == 1, defined, undefined)
