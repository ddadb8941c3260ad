"""Shares of kernels of public repositories that compile here and that become vector code.

    git clone https://github.com/huggingface/candle
    python benchmarks/wild.py candle ... --results wild.jsonl --markdown

Each argument is the checkout of a repository. Every kernel of its ``.metal`` and ``.msl`` files is
compiled to machine code for the CPU; of a template with many instantiations, some (``--each``).
Nothing is launched. Includes are searched in the whole repository, and function constants are set.

A text is *MSL as it stands* if it compiles once its own includes are found. Others are counted on
their own, with the reason: fragments that a host completes with headers, macros or other texts
before it compiles them, and vertex or fragment functions.

Kernels that are not vector code are named on standard error; the rest of docs/evidence/
public-kernels.md is what ``--markdown`` prints.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from public_tree.outcomes import Outcome, outcome
from public_tree.texts import Kernel, Text, commit, files, read, repeated
from workers import Worker, share

#: A kernel that takes longer than this many seconds counts as not compiled.
PATIENCE = 100
#: Kernels that take longer are listed.
SLOW = 10
COLUMNS = (
    "files", "kernels", "tried", "compiled", "vector code", "share", "slowest, s", "not MSL",
)  # fmt: skip


class Repository(NamedTuple):
    """Facts of one repository."""

    name: str
    commit: str
    texts: list[Text]
    kernels: list[Kernel]
    outcomes: dict[Kernel, Outcome]

    @property
    def refused(self) -> int:
        """Kernels of texts that are MSL as they stand and do not compile as a whole."""
        return sum(text.others for text in self.texts if text.refusal)

    def row(self) -> tuple[int | float, ...]:
        """The numbers of COLUMNS but the share."""
        valid = [one for one in self.outcomes.values() if not one.not_msl]
        return (
            len(self.texts), len(self.kernels) + self.refused, len(valid) + self.refused,
            sum(bool(one.engine) for one in valid), sum(one.is_vector_code for one in valid),
            max((one.seconds for one in valid), default=0),
            sum(text.others for text in self.texts if text.not_msl)
            + len(self.outcomes) - len(valid),
        )  # fmt: skip


def sample(kernels: Iterable[Kernel], each: int) -> list[Kernel]:
    """At most so many kernels of each function or template, drawn with a seed."""
    of_function: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        of_function[kernel.file, kernel.function].append(kernel)
    rng = random.Random(0)
    return [
        kernel
        for group in of_function.values()
        for kernel in (rng.sample(group, each) if len(group) > each else group)
    ]


def examine(tree: Path, options: argparse.Namespace, known: dict[str, Outcome]) -> Repository:
    """Compile a repository's kernels; new outcomes are added to the results."""
    workers = [Worker(tree) for _ in range(options.jobs)]
    texts: dict[str, Text] = {}

    def read_one(worker: Worker, file: str) -> None:
        texts[file] = worker.ask(read, file, 10 * options.patience)

    share(workers, files(tree), read_one)
    kernels = repeated([kernel for file in sorted(texts) for kernel in texts[file].kernels])
    outcomes: dict[Kernel, Outcome] = {}

    def compile_one(worker: Worker, kernel: Kernel) -> None:
        key = f"{tree.name}/{kernel.file}:{kernel.name}"
        result = known.get(key)
        if result is None or (options.again and not result.is_vector_code):
            try:
                result = worker.ask(outcome, kernel, options.patience)
            except (EOFError, TimeoutError) as error:
                result = Outcome("", str(error), options.patience)
            with options.results.open("a") as log:
                log.write(json.dumps([key, *result]) + "\n")
        if not result.is_vector_code:
            print(f"{key}: {result.reason}", file=sys.stderr, flush=True)
        outcomes[kernel] = result

    share(workers, sample(kernels, options.each), compile_one)
    for worker in workers:
        worker.stop()
    return Repository(tree.name, commit(tree), list(texts.values()), kernels, outcomes)


def report(repositories: Sequence[Repository], markdown: bool) -> None:
    """Print the table, and the reasons below it."""
    rows = [(f"{each.name} {each.commit}", *each.row()) for each in repositories]
    columns = [*zip(*rows, strict=True)][1:]
    rows.append(("total", *(max(c) if k == 5 else sum(c) for k, c in enumerate(columns))))
    if markdown:
        print("| repository |", " | ".join(COLUMNS), "|")
        print("|---|" + "---:|" * len(COLUMNS))
    else:
        print(f"{'':40}", *(f"{column:>11}" for column in COLUMNS))
    for name, *numbers in rows:
        tried, vector = numbers[2], numbers[4]
        cells = [f"{number:,}" for number in numbers]
        cells.insert(5, f"{100 * vector / tried:.1f} %" if tried else "")
        if markdown:
            print(f"| {name} |", " | ".join(cells), "|")
        else:
            print(f"{name:40}", *(f"{cell:>11}" for cell in cells))
    every = [one for each in repositories for one in each.outcomes.values()]
    outcomes = [one for one in every if not one.not_msl]
    texts = [text for each in repositories for text in each.texts]
    _reasons("Not compiled", Counter(one.reason for one in outcomes if not one.engine) + _count(
        (text.refusal, text.others) for text in texts
    ))  # fmt: skip
    _reasons("Compiled, but not vector code", Counter(
        one.reason for one in outcomes if one.engine and not one.is_vector_code
    ))  # fmt: skip
    _reasons("Kernels of texts that are not MSL as they stand", _count(
        [*((text.not_msl, text.others) for text in texts), *((one.not_msl, 1) for one in every)]
    ))  # fmt: skip
    slow = Counter({
        f"{each.name}: `{kernel.name}`": one.seconds
        for each in repositories for kernel, one in each.outcomes.items() if one.seconds > SLOW
    })  # fmt: skip
    _reasons(f"Kernels that took longer than {SLOW} s to compile, in seconds", slow)


def _count(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for reason, count in pairs:
        if reason and count:
            total[reason] += count
    return total


def _reasons(title: str, count: Counter[str]) -> None:
    print(f"\n{title}:\n")
    for reason, number in count.most_common():
        print(f"* {number} {reason}")
    if not count:
        print("* none")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", type=Path, nargs="+", help="checkouts of repositories")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--each", type=int, default=2, help="kernels of each template, drawn at random"
    )
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds after which a kernel hangs"
    )
    parser.add_argument("--again", action="store_true", help="redo all that is not vector code")
    parser.add_argument("--results", type=Path, default=Path("wild.jsonl"))
    parser.add_argument("--markdown", action="store_true", help="print the table for a page")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    known = {}
    if options.results.exists():
        for line in options.results.read_text().splitlines():
            key, *result = json.loads(line)
            known[key] = Outcome(*result)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["METALLOID_CACHE_DIR"] = cache  # of the processes, too
        repositories = [examine(tree.resolve(), options, known) for tree in options.trees]
    report(repositories, options.markdown)


if __name__ == "__main__":
    main()
