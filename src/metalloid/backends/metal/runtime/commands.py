"""One launch as it is encoded: what is bound where, and what it reads and writes."""

from __future__ import annotations

from typing import Any, NamedTuple

from metalloid.backends.metal.compile.programs import MetalProgram
from metalloid.backends.metal.runtime.images import Image
from metalloid.backends.metal.runtime.memory import Allocation
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.program import Size


class CopyBack(NamedTuple):
    """A copy from a buffer to memory of the process, made when the launch has ended.

    A buffer of the memory's own pages needs none; until then launches that use parts of its memory
    take the buffer.
    """

    source: Allocation
    nbytes: int


class Command:
    """A launch whose arguments have been resolved.

    Attributes
    ----------
    program : MetalProgram
    arguments : Arguments
        What it binds; all of it lives as long as the command.
    buffers : list of (int, MTLBuffer, int)
        Index, buffer and offset.
    inline : list of (int, object, int)
        Index, object and bytes, of what is copied into the command.
    textures, samplers : list of (int, object)
        Index, and Metal's object.
    images : dict of Image
        Textures, by what `textures.image_of` knows them by.
    threadgroup : list of (int, int)
        Index and bytes of threadgroup memory.
    reads, writes : list of Allocation
    used : list of (MTLResource, bool)
        Those that only words in memory lead to, and whether they are written.
    copies : list of CopyBack
    grid, group : Size
    """

    __slots__ = (
        "arguments",
        "buffers",
        "copies",
        "grid",
        "group",
        "images",
        "inline",
        "program",
        "reads",
        "samplers",
        "textures",
        "threadgroup",
        "used",
        "writes",
    )

    def __init__(
        self, program: MetalProgram, arguments: Arguments, grid: Size, group: Size
    ) -> None:
        self.program, self.arguments, self.grid, self.group = program, arguments, grid, group
        self.buffers: list[tuple[int, Any, int]] = []
        self.inline: list[tuple[int, Any, int]] = []
        self.textures: list[tuple[int, Any]] = []
        self.samplers: list[tuple[int, Any]] = []
        self.images: dict[Any, Image] = {}
        self.threadgroup: list[tuple[int, int]] = []
        self.reads: list[Allocation] = []
        self.writes: list[Allocation] = []
        self.used: list[tuple[Any, bool]] = []
        self.copies: list[CopyBack] = []

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.program.signature.name

    @property
    def logs(self) -> bool:
        """Whether the kernel may log."""
        return self.program.logs
