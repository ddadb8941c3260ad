"""A lowered and checked MSL file, and its form in the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from metalloid.msl.entry_points import EntryPoint, GroupLimits, Parameter

if TYPE_CHECKING:  # bundles of kernels need none of them
    from metalloid.compiler.toolchain.target import MathMode
    from metalloid.msl.diagnostics import Diagnostic
    from metalloid.msl.function_constants import FunctionConstant
    from metalloid.msl.lower import Lowered

#: Name of a text that came from no file, as Metal calls it.
PROGRAM_SOURCE = "program_source"
Bounds = Literal["checked", "unchecked"]
BOUNDS: tuple[str, ...] = get_args(Bounds)
#: ``"default"``: neither is requested, and devices make the checks that cost little.
ResolvedBounds = Literal["default", "checked", "unchecked"]
_FACTS, _TEXT = "unit.json", "lowered.cpp"


class Options(NamedTuple):
    """The options of a library, for all devices.

    Attributes
    ----------
    math_mode : {"safe", "relaxed", "fast"}
    include_dirs : tuple of str
        Folders searched for ``#include``.
    defines : tuple of (str, str)
        Macros, sorted by name.
    bounds : {"default", "checked", "unchecked"}
        Whether accesses outside of their objects end a launch. By default they do on the CPU.
    check : bool
        Whether the sanitizer checks all launches.
    is_generated : bool
        Whether the array library generated the text. Its kernels are compiled without a first run
        of clang that finds all errors and warnings of the text.
    """

    math_mode: MathMode = "safe"
    include_dirs: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    bounds: ResolvedBounds = "unchecked"
    check: bool = False
    is_generated: bool = False

    def __repr__(self) -> str:
        """All that units depend on: the key of a unit has it."""
        return (
            f"Options(math_mode={self.math_mode!r}, include_dirs={self.include_dirs!r}, "
            f"defines={self.defines!r}, is_generated={self.is_generated!r})"
        )


class KernelTable(Mapping[str, EntryPoint]):
    """The kernels of a file by name, in the order of the text.

    Some files make thousands of kernels from a few templates, and a program wants one of them: the
    table is kept as rows that share what they have in common, and read where it is asked.
    """

    def __init__(self, heads: list[Any], rows: list[Any]) -> None:
        self._heads = heads
        self._rows = {row[0]: row for row in rows}

    @staticmethod
    def encode(kernels: Sequence[EntryPoint]) -> dict[str, Any]:
        """The arguments of the constructor, as JSON has them."""
        heads: dict[tuple[tuple[Parameter, ...], str, GroupLimits], int] = {}
        rows = []
        for kernel in kernels:
            head = (kernel.parameters, kernel.file, kernel.limits)
            number = heads.setdefault(head, len(heads))
            rows.append((kernel.name, kernel.expression, kernel.line, number))
        return {
            "heads": [
                ([(p.name, p.declaration, p.attributes) for p in parameters], file, limits)
                for parameters, file, limits in heads
            ],
            "rows": rows,
        }

    def __getitem__(self, name: str) -> EntryPoint:
        name, expression, line, head = self._rows[name]
        rows, file, (max_total, size) = self._heads[head]
        parameters = tuple(
            Parameter(name, declaration, tuple((key, value) for key, value in attributes))
            for name, declaration, attributes in rows
        )
        limits = GroupLimits(max_total, tuple(size) if size else None)
        return EntryPoint(name, expression, parameters, file, line, limits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(eq=False, repr=False)
class TranslationUnit:
    """A lowered and checked MSL file.

    Attributes
    ----------
    key : str
        Names the preprocessed text and everything else that shapes the lowered one.
    kernels : KernelTable
    other_stages : dict
        Stage of the entry points that cannot run here, by name.
    constants : tuple of FunctionConstant
    warnings : tuple of Diagnostic
    has_large_calls : bool
        Whether it takes too long to compile with every call inlined.
    text : str
        The lowered C++ text.
    sources : dict
        The user's text by file name, for messages.
    """

    key: str
    options: Options
    kernels: KernelTable
    other_stages: dict[str, str]
    constants: tuple[FunctionConstant, ...]
    warnings: tuple[Diagnostic, ...]
    has_large_calls: bool
    text: str
    sources: dict[str, str]


def encode(
    key: str,
    text: str,
    lowered: Lowered,
    warnings: Sequence[Diagnostic],
    dependencies: Mapping[str, str],
) -> dict[str, str]:
    """The files of a unit's cache entry.

    Parameters
    ----------
    text : str
        The lowered text as repaired.
    dependencies : mapping
        Digest of each file that was included, by name.
    """
    facts = {
        "key": key,
        "dependencies": dependencies,
        "kernels": KernelTable.encode(lowered.kernels),
        "other_stages": lowered.other_stages,
        "constants": [asdict(constant) for constant in lowered.constants],
        "warnings": [asdict(warning) for warning in warnings],
        "has_large_calls": lowered.has_large_calls,
    }
    return {_FACTS: json.dumps(facts), _TEXT: text}


def bundle_facts(unit: TranslationUnit) -> dict[str, Any]:
    """The facts of a unit that a bundle of its kernels has: those of `restore_bundled`."""
    return {
        "kernels": KernelTable.encode(list(unit.kernels.values())),
        "other_stages": unit.other_stages,
        "constants": [asdict(constant) for constant in unit.constants],
    }


def restore_bundled(facts: Mapping[str, Any], file: str, source: str) -> TranslationUnit:
    """A unit whose kernels have been compiled, and which cannot compile any."""
    return TranslationUnit(
        key="",
        options=Options(),
        kernels=KernelTable(**facts["kernels"]),
        other_stages=facts["other_stages"],
        constants=_constants(facts),
        warnings=(),
        has_large_calls=False,
        text="",
        sources={file: source},
    )


def restore(
    files: Mapping[str, Path], options: Options, sources: dict[str, str], check: bool = True
) -> TranslationUnit | None:
    """The unit in a cache entry; None if `check` finds that a file it included has changed."""
    from metalloid.compiler.toolchain.cache import read_text
    from metalloid.msl.diagnostics import Diagnostic

    facts = json.loads(files[_FACTS].read_bytes())
    if check and not all(_is_unchanged(*known) for known in facts["dependencies"].items()):
        return None
    return TranslationUnit(
        key=facts["key"],
        options=options,
        kernels=KernelTable(**facts["kernels"]),
        other_stages=facts["other_stages"],
        constants=_constants(facts),
        warnings=tuple(Diagnostic(**warning) for warning in facts["warnings"]),
        has_large_calls=facts["has_large_calls"],
        text=read_text(files[_TEXT]),
        sources=sources,
    )


def _constants(facts: Mapping[str, Any]) -> tuple[FunctionConstant, ...]:
    if not facts["constants"]:
        return ()
    from metalloid.msl.function_constants import FunctionConstant

    return tuple(FunctionConstant(**constant) for constant in facts["constants"])


def _is_unchanged(file: str, known: str) -> bool:
    from metalloid.compiler.toolchain.cache import digest

    try:
        return digest(Path(file).read_bytes()) == known
    except OSError:
        return False
