"""A compiled kernel, and the requests that its code answers.

Nothing here compiles: a bundle of kernels runs without importing the compiler. Each method that
`dataclass` generates takes a tenth of a millisecond of the time to load a bundle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from metalloid.backends.cpu.compile.variants import Variant, parse_variant
from metalloid.compiler.bounds.table import BoundsTable
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import read_text
from metalloid.errors import MetalloidError

#: In a bundle, the file with the facts of all versions of a kernel.
VERSIONS = "versions.json"


class BoundsRequest(NamedTuple):
    """The accesses of a kernel that its code checks.

    Attributes
    ----------
    checks : bool
        Whether there are any checks.
    every : bool
        Whether also those that a launch may prove; else only `sites` of them.
    sites : tuple of int
    """

    checks: bool = False
    every: bool = False
    sites: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.checks:
            return "unchecked"
        return "all" if self.every else "checked-" + ",".join(map(str, self.sites))


#: No access is checked.
UNCHECKED = BoundsRequest()


class Sanitizer(StrEnum):
    """Whether a kernel is instrumented for the sanitizer, and for which of its engines."""

    OFF = ""
    EXACT = "exact"
    FAST = "fast"


class AccessTable(NamedTuple):
    """Facts of the accesses of a kernel by number of the site, as JSON has them.

    Attributes
    ----------
    sites : list
        Kind, type in the IR, alignment, name of the variable, and position in the text of each.
    unit : int
        Bytes of a unit of threadgroup memory of the vector form.
    """

    sites: tuple[dict[str, Any], ...] = ()
    unit: int = 0


class CounterTable(NamedTuple):
    """The costs of the blocks of a kernel that counts them, as JSON has them.

    Attributes
    ----------
    blocks : tuple
        By number of the block, ``"lines"`` has for each line of the text: its file, number and
        text, and the fields of `Cost` in `count_blocks`. The file is empty for code that is of no
        line. ``"traffic"`` has the fields of `Traffic`.
    """

    blocks: tuple[dict[str, list[list[Any]]], ...] = ()


_NO_COUNTERS = CounterTable()


@dataclass(eq=False, repr=False, kw_only=True)
class CodeProperties:
    """Properties of a kernel's code on which its compilation and launches depend.

    Attributes
    ----------
    code_command : tuple of str
        Compiles its IR to code.
    engine : str
        The engine that runs it, and why.
    variant : Variant or None
        None if there is one only.
    widths : tuple of int
        Widths its simdgroups may have, the best first; empty if it is not vector code.
    variable_bytes : int
        Threadgroup memory for variables that a launch has to allocate.
    fibres : bool
        Whether each thread needs its own stack.
    reads_in_loops : bool
        Whether threads load in loops.
    rows : int
        Number of rows of threads computed at a time.
    streamable : int
        Bytes of cache for each thread, beyond which a launch is faster with non-temporal stores.
    axis : str
        Axis along which neighbouring threads access contiguous memory: ``"x"``, ``"y"`` or ``"z"``.
    private_words : tuple of int
        Words that point to buffers of which each worker may have a copy (`buffer_privatization`).
    adds_in_loops : bool
        Whether loops add to them.
    """

    code_command: tuple[str, ...]
    engine: str
    variant: Variant | None = None
    widths: tuple[int, ...] = ()
    variable_bytes: int = 0
    fibres: bool = False
    reads_in_loops: bool = False
    rows: int = 1
    streamable: int = 0
    axis: str = "x"
    private_words: tuple[int, ...] = ()
    adds_in_loops: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class CompiledKernel(CodeProperties):
    """A kernel as machine code.

    Attributes
    ----------
    architecture : str
        Of the target: ``"x86_64"`` or ``"aarch64"``.
    code : Path
        A shared object; for another machine, an object file.
    layouts : tuple of int
        Table of the parameters' types, for `build_signature`.
    waits : bool
        Whether threads wait for each other.
    shares : bool
        Whether it has threadgroup variables.
    threadgroup_bytes : int
        Their size.
    logs : bool
        Whether it logs messages.
    stages : dict
        File of each stage of compilation by name.
    bounds : BoundsTable
        The checks of its accesses.
    accesses : AccessTable
        Its accesses, if it is instrumented for the sanitizer.
    counters : CounterTable
        Its blocks, if it counts them.
    """

    architecture: str
    code: Path
    layouts: tuple[int, ...]
    waits: bool
    shares: bool
    threadgroup_bytes: int
    logs: bool
    stages: dict[str, Path]
    bounds: BoundsTable
    accesses: AccessTable
    counters: CounterTable = _NO_COUNTERS

    def asm(self) -> dict[str, str]:
        """Text of each stage: the lowered C++, LLVM IR, and assembly.

        Raises
        ------
        MetalloidError
            If it was loaded from a bundle, which has machine code only.
        """
        if not self.stages:
            raise MetalloidError("[bundle] a bundle has machine code only, and no text of it.")
        texts = {name: read_text(path) for name, path in self.stages.items()}
        outcome = clang.run([*self.code_command, "-S", "-o", "-", "-"], texts["ll"])
        texts["x86" if self.architecture == "x86_64" else "arm64"] = outcome.text
        return texts


def restored(
    facts: dict[str, Any], architecture: str, code: Path, stages: dict[str, Path]
) -> CompiledKernel:
    """A compiled kernel from the facts in ``kernel.json``."""
    facts = dict(facts)
    for name in ("code_command", "layouts", "widths", "private_words"):
        facts[name] = tuple(facts[name])
    facts["bounds"] = BoundsTable(**facts["bounds"])
    facts["accesses"] = AccessTable(**facts["accesses"])
    facts["counters"] = CounterTable(**facts["counters"])
    facts["variant"] = parse_variant(facts["variant"]) if facts["variant"] else None
    return CompiledKernel(**facts, architecture=architecture, code=code, stages=stages)


def facts_of(kernel: CompiledKernel) -> dict[str, Any]:
    """The facts of a compiled kernel, as ``kernel.json`` has them."""
    names = [each.name for each in fields(CompiledKernel)]
    facts = {
        name: getattr(kernel, name)
        for name in names if name not in ("architecture", "code", "stages")
    }  # fmt: skip
    return facts | {
        "variant": str(kernel.variant or ""),
        "bounds": kernel.bounds._asdict(),
        "accesses": kernel.accesses._asdict(),
        "counters": kernel.counters._asdict(),
    }
