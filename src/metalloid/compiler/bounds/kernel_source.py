"""A kernel of a translation unit as LLVM IR for a GPU, with or without checks of its accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metalloid.compiler.bounds.recorded_faults import NAMES, RECORD_TEXT, checked_words
from metalloid.compiler.frontend.debug_info import LINE_TABLES, with_user_locations
from metalloid.compiler.frontend.entry import entry_text, read_layouts
from metalloid.compiler.frontend.source_positions import SourcePositions, is_user_file
from metalloid.compiler.frontend.translate import compile_command, compile_entry
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.compiler.toolchain.cache import Cache
from metalloid.compiler.toolchain.target import Target
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.signature import Signature, build_signature


class KernelIr(NamedTuple):
    """A kernel as LLVM IR.

    Attributes
    ----------
    text : str
        The C++.
    ir : str
    layouts : sequence of int
        Table of the parameters' types, for `build_signature`.
    signature : Signature
    words : int
        Of a launch.
    positions : SourcePositions or None
        Of the text, if the kernel's accesses are to be checked.
    """

    text: str
    ir: str
    layouts: Sequence[int]
    signature: Signature
    words: int
    positions: SourcePositions | None


@dataclass(frozen=True)
class KernelSource:
    """The source of a kernel, and how it becomes LLVM IR.

    Attributes
    ----------
    unit, entry, constants, target, cache
        The kernel, as `Device.compile` takes it.
    entry_code : callable
        The function for the driver, from the C++ expression for the number of a launch's words.
    options : tuple of str
        Of clang.
    retains_kernel : bool
        See `entry_text`.
    """

    unit: TranslationUnit
    entry: EntryPoint
    constants: Mapping[int, str]
    target: Target
    cache: Cache
    entry_code: Callable[[str], str]
    options: tuple[str, ...] = ()
    retains_kernel: bool = True

    @property
    def is_checked(self) -> bool:
        """Whether the kernel's accesses are to be checked."""
        return self.unit.options.bounds == "checked"

    def compiled(self, *more: str, words: int = 0) -> tuple[str, str]:
        """C++ and LLVM IR by more options, with words of a launch if accesses are to be checked."""
        unit, target = self.unit, self.target
        to_ir = [
            *compile_command(unit.text, unit.options, target, self.cache),
            *(*self.options, "-w", "-S", "-emit-llvm", "-o", "-", "-"),
        ]
        count = str(words) if words else "mtl_entry_type::parameter_count"
        code = self.entry_code(count) + (RECORD_TEXT.format(words) if words else "")

        def embed(text: str) -> str:
            return entry_text(
                text, unit, self.entry, self.constants, code, retains_kernel=self.retains_kernel
            )

        return compile_entry([*to_ir, *more], unit, self.entry, target, embed)

    def lowered(self, debug_lines: bool = False) -> KernelIr:
        """The kernel as LLVM IR."""
        text, ir = self.compiled()
        layouts = read_layouts(ir)
        signature = build_signature(self.entry, layouts)
        if not self.is_checked:
            return KernelIr(text, ir, layouts, signature, len(signature.sources), None)
        words = checked_words(signature)
        text, ir = self.compiled(NAMES, *(LINE_TABLES,) * debug_lines, words=words)
        ir = with_user_locations(ir, is_user_file) if debug_lines else ir
        positions = SourcePositions(self.unit.sources, text)
        return KernelIr(text, ir, layouts, signature, words, positions)
