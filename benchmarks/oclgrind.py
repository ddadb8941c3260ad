"""Oclgrind's tests with the sanitizer: ``python benchmarks/oclgrind.py FOLDER``.

The folder is a checkout of jrprice/Oclgrind. Its kernels in OpenCL C are translated to Metal
(`opencl_text`) and launched with the sizes and arguments of its ``.sim`` files; its ``.ref`` files
say which errors Oclgrind reports.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from opencl_text import NotPortable, translated
from timing import table

import metalloid as mtl

#: The kind of finding for what Oclgrind says.
_KINDS = (
    ("data race", "race"), ("exceeds static array size", "outside"), ("Invalid read of", "outside"),
    ("Invalid write of", "outside"), ("Uninitialized", "uninitialised"),
    ("divergence detected (barrier)", "divergence"), ("not aligned", "misaligned"),
)  # fmt: skip


class Argument(NamedTuple):
    """An argument in a ``.sim`` file."""

    options: dict[str, str]
    words: list[str]

    def value(self, dtype: np.dtype[Any]) -> np.ndarray:
        """Its elements, of the type of the parameter."""
        count, base = int(self.options["size"]) // dtype.itemsize, dtype.base
        if base.names is not None:
            return np.zeros(count, dtype)
        elements = count * dtype.itemsize // base.itemsize
        if "range" in self.options:
            first, step, _ = map(float, self.options["range"].split(":"))
            values = first + step * np.arange(elements)
        elif self.words:
            values = np.array([_number(word) for word in self.words[:elements]])
            values = np.resize(values, elements)
        else:
            values = np.full(elements, float(self.options.get("fill", 0)))
        return values.astype(base).reshape(count, *dtype.shape)


def _number(word: str) -> float:
    return int(word, 16) if re.match(r"-?0x", word) else float(word)


def arguments(text: str) -> Iterator[Argument]:
    """The arguments of a ``.sim`` file, after its first four lines."""
    for options, words in re.findall(r"<([^>]*)>([^<]*)", text):
        given = dict((*option.split("=", 1), "")[:2] for option in options.split())
        yield Argument(given, words.split())


def expected_kinds(reference: str) -> set[str]:
    """Kinds of findings that a ``.ref`` file expects.

    Raises
    ------
    NotPortable
        If it has errors of another kind.
    """
    kinds = set()
    for error in re.findall(r"^\s*ERROR (.*)", reference, re.M):
        matching = [kind for words, kind in _KINDS if words in error]
        if not matching:
            raise NotPortable(re.sub(r"\d.*", "", error).strip())
        kinds.add(matching[0])
    return kinds


def kinds_of_findings(folder: Path, test: str) -> tuple[set[str], str]:
    """Kinds of findings in a test, and their text."""
    path = folder / test
    text = re.sub(r"^#.*\n", "", path.with_suffix(".sim").read_text(), flags=re.M).strip()
    file, name, grid, group, *rest = text.split("\n")
    lib = mtl.library(
        translated((path.parent / file).read_text(), is_cuda=False).text, device="cpu", check=True
    )
    kernel, given = lib[name.strip()], arguments("\n".join(rest))
    signature, values = kernel.signature, []
    positions = {p.position: p for p in (*signature.arguments, *signature.threadgroup)}
    for position in sorted(positions):
        argument, parameter = next(given), positions[position]
        if parameter.is_threadgroup:
            values.append(mtl.threadgroup_memory(int(argument.options["size"]) + 15 & -16))
        elif "null" in argument.options:
            values.append(None)
        elif "noinit" in argument.options:
            values.append(mtl.Buffer(int(argument.options["size"])))
        else:
            values.append(argument.value(kernel.dtype(parameter.name)))
    sizes = {"threads": _size(grid), "group_size": _size(group)}
    kinds, text = set(), ""
    with mtl.checking(raises=False) as findings:
        try:
            kernel(*values, **sizes, timeout=10)
        except mtl.KernelFault as error:
            kinds = {"divergence" if "barrier" in error.reason else "outside"}
            text = str(error)
    return kinds | {f.kind for f in findings}, "\n".join([text, *(f.describe() for f in findings)])


def _size(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of Oclgrind")
    parser.add_argument("--verbose", action="store_true", help="print findings and errors")
    options = parser.parse_args(arguments)
    folder = options.folder / "tests" / "kernels"
    tests = (folder / "TESTS").read_text().split()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons, others = Counter[str](), []
    for test in tests:
        reference = folder / f"{test}.ref"
        try:
            expected = expected_kinds(reference.read_text() if reference.exists() else "")
            kinds, text = kinds_of_findings(folder, test)
        except (NotPortable, mtl.CompileError, mtl.ArgumentError, mtl.LaunchError) as error:
            does_compile = isinstance(error, NotPortable | mtl.ArgumentError)
            reasons[str(error)[:80] if does_compile else "does not compile"] += 1
            if options.verbose:
                print(f"{test}: {str(error)[:300]}")
            continue
        label = ", ".join(sorted(expected)) or "correct"
        counts[label]["tests"] += 1
        if "outside" in kinds:  # the launch has ended there
            expected &= kinds
        is_right = expected <= kinds if expected else not kinds
        counts[label]["agree"] += is_right
        if not is_right:
            others.append(f"* {test}: {label}; {', '.join(sorted(kinds)) or 'nothing'}")
            others += [f"    {line}" for line in text.splitlines() if options.verbose]
    rows = [(label, count["tests"], count["agree"]) for label, count in sorted(counts.items())]
    portable = sum(count["tests"] for count in counts.values())
    table(f"{portable} portable of {len(tests)} tests", ("label", "tests", "agree"), rows)
    table("Not portable", ("tests", "reason"), [(n, reason) for reason, n in reasons.most_common()])
    print("\nOther than the label:", *others, sep="\n")


if __name__ == "__main__":
    main()
