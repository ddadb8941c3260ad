"""The line of the MSL source that an address in a kernel's code comes from.

Kernels are compiled without debug information. When one fails it is compiled again with it, which
changes no instruction, and the line table of that object is looked up.
"""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile


class _SymbolInfo(ctypes.Structure):
    """The result of ``dladdr`` (dlfcn.h, Dl_info)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def load_address(code: int) -> int:
    """Where the shared object with an address is loaded; 0 if there is none."""
    info = _SymbolInfo()
    dladdr = ctypes.CDLL(None).dladdr
    status = dladdr(ctypes.c_void_p(code), ctypes.byref(info))
    return (info.base or 0) if status else 0


def source_line(plain: Path, with_lines: Path, offset: int) -> tuple[str, int] | None:
    """File and line of an instruction; None if it is unknown.

    Parameters
    ----------
    plain, with_lines : Path
        The shared object that runs, and the same code with debug information.
    offset : int
        Of the instruction, from the address at which the object is loaded.
    """
    if platform.system() != "Linux":
        return None  # Mach-O objects leave debug information to other files
    from elftools.elf.elffile import ELFFile  # 50 ms, and kernels rarely fail

    with plain.open("rb") as first, with_lines.open("rb") as second:
        objects = ELFFile(first), ELFFile(second)
        code, other = (_code(each) for each in objects)
        if not code or code != other or not objects[1].has_dwarf_info():
            return None
        dwarf = objects[1].get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is not None and (row := _row(program, offset)):
                return row
    return None


def _code(file: ELFFile) -> bytes:
    section = file.get_section_by_name(".text")
    return bytes(section.data()) if section is not None else b""


def _row(program: Any, offset: int) -> tuple[str, int] | None:
    """The row of a line table that covers an address."""
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address <= offset < state.address and before.line:
            return _file(program.header, before.file), before.line
        before = None if state.end_sequence else state
    return None


def _file(header: Any, index: int) -> str:
    """A file of a line table, as it was given to clang.

    DWARF 5 counts files and folders from 0, and folder 0 is clang's own; older versions count from
    1, and 0 stands for that folder.
    """
    start = 0 if header.version >= 5 else 1
    file = header.file_entry[index - start]
    name = str(file.name.decode())
    if not file.dir_index:
        return name
    return str(Path(header.include_directory[file.dir_index - start].decode()) / name)
