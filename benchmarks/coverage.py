"""Shares of MLX's own Metal kernels that compile here and that give the right numbers.

    git clone https://github.com/ml-explore/mlx && git -C mlx checkout 846d176
    python benchmarks/coverage.py --mlx mlx --jobs 4 --results coverage.jsonl

Every entry of the tree's ``.metal`` files is compiled to machine code and, where its family in
``benchmarks/mlx_tree`` knows how, launched as MLX's host code does and compared with an oracle.
The files for the matrix units of newer GPUs, which use Metal 4's tensors, are a table of their own:
``--nax``.
Results are chosen, one JSON line an entry: a run that was stopped goes on where it was. ``--jobs 16
--gpus 2`` spreads them over GPUs.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from mlx_tree.entries import Entry, families, family_of, files
from mlx_tree.workers import PATIENCE, Workers, outcome

COLUMNS = ("entries", "compiled", "vector code", "agree", "disagree", "unchecked", "to do")


def read(path: Path) -> dict[Entry, dict[str, Any]]:
    """Results of earlier runs."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {Entry(line["file"], line["name"]): line for line in lines}


#: Entries and their templates, by the name of their family; by file where there is none.
Groups = dict[str, dict[Entry, str]]


def entries_of(tree: Path, nax: bool, workers: Workers) -> Groups:
    """The entries of a tree; a file that does not compile as a whole has one without a name."""
    known = families()
    by_family: Groups = defaultdict(dict)
    for file, (names, refusal) in sorted(workers.names(files(tree, nax)).items()):
        if refusal:
            print(f"{file} does not compile: {refusal}")
        for name, template in (names or {"": ""}).items():
            entry = Entry(file, name)
            family = family_of(entry, known)
            by_family[family.name if family else Path(file).stem][entry] = template
    return by_family


def sampled(entries: dict[Entry, str], size: int | None, per_template: int | None) -> list[Entry]:
    """Some entries of a family. A sample contains the smaller ones: a run can be taken up again."""
    shuffled = random.Random(0).sample(sorted(entries), len(entries))
    if per_template is not None:
        seen: Counter[str] = Counter()
        chosen = []
        for entry in shuffled:
            seen[entries[entry]] += 1
            if seen[entries[entry]] <= per_template:
                chosen.append(entry)
        shuffled = chosen
    return shuffled[:size]


def table(by_family: Groups, results: dict[Entry, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows of a family's name and its numbers, in the order of COLUMNS; the total comes last."""
    rows = []
    for name, entries in sorted(by_family.items()):
        lines = [results[entry] for entry in entries if entry in results]
        verdicts = Counter(line["checked"] for line in lines)
        rows.append((
            name, len(entries), sum(line["compiled"] for line in lines),
            sum(line["engine"].startswith("simd") for line in lines), verdicts["agrees"],
            verdicts["disagrees"], verdicts["unchecked"], len(entries) - len(lines),
        ))  # fmt: skip
    return [*rows, ("total", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))]


def show(rows: list[tuple[Any, ...]], markdown: bool) -> None:
    if markdown:
        print("| family |", " | ".join(COLUMNS), "|")
        print("|---|" + "---:|" * len(COLUMNS))
        for name, *numbers in rows:
            print(f"| {name} |", " | ".join(f"{number:,}" for number in numbers), "|")
        return
    print(f"{'':24}", *(f"{column:>11}" for column in COLUMNS))
    for name, *numbers in rows:
        print(f"{name:24}", *(f"{number:11,}" for number in numbers))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mlx", type=Path, required=True, help="a checkout of MLX")
    parser.add_argument("--nax", action="store_true", help="the *_nax files instead of the others")
    parser.add_argument("--family", nargs="+", help="only these, as the table calls them")
    parser.add_argument("--match", default="", help="only entries that this expression finds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--gpus", type=int, default=0, help="deal the processes out to so many")
    parser.add_argument("--device", help="such as opencl; by default that of METALLOID_DEVICE")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds after which an entry hangs"
    )
    parser.add_argument("--sample", type=int, help="so many entries of each family only")
    parser.add_argument("--per-template", type=int, help="so many of each template only")
    parser.add_argument(
        "--range",
        type=int,
        nargs=2,
        default=(0, None),
        metavar=("START", "END"),
        help="only these of the entries in their random order: to share them out to machines",
    )
    parser.add_argument(
        "--bounds", help="unchecked: GPUs then compile no code for the host that refutes launches"
    )
    parser.add_argument("--again", action="store_true", help="redo all that do not agree")
    parser.add_argument("--results", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--markdown", action="store_true", help="print the table for a page")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.device:
        os.environ["METALLOID_DEVICE"] = options.device  # of the processes
    examine = functools.partial(outcome, bounds=options.bounds)
    workers = Workers(options.mlx, options.jobs, options.gpus, options.seconds, examine)
    groups = entries_of(options.mlx, options.nax, workers)
    unknown = set(options.family or ()) - groups.keys()
    if unknown:
        raise SystemExit(f"unknown families: {', '.join(unknown)}; known: {', '.join(groups)}")
    chosen: list[Entry] = []
    for name, entries in groups.items():
        if not options.family or name in options.family:
            mine = {
                e: template for e, template in entries.items() if re.search(options.match, e.name)
            }
            chosen += sampled(mine, options.sample, options.per_template)
    # What a run that stops early has done is a fair sample.
    random.Random(0).shuffle(chosen)
    chosen = chosen[slice(*options.range)]
    results = read(options.results)
    family = {entry: name for name, entries in groups.items() for entry in entries}

    with options.results.open("a") as log:

        def done(entry: Entry, result: dict[str, Any]) -> None:
            results[entry] = {**entry._asdict(), "family": family[entry], **result}
            log.write(json.dumps(results[entry]) + "\n")
            log.flush()
            if result["checked"] == "disagrees" or not result["compiled"]:
                print(f"{entry.file} {entry.name}: {result['reason'].splitlines()[0]}", flush=True)

        todo = [
            entry
            for entry in chosen
            if entry not in results or (options.again and results[entry]["checked"] != "agrees")
        ]
        workers.check(todo, options.patience, done)
    workers.stop()
    show(table(groups, results), options.markdown)


if __name__ == "__main__":
    main()
