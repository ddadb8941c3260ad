"""Shares of kernels of public repositories that have adjoints, and reasons why others have none.

    git clone https://github.com/huggingface/candle
    python benchmarks/public_gradients.py candle ... --count 200 --jobs 2 --markdown

Each argument is the checkout of a repository. Kernels are drawn at random, one of each function or
template, from those that read and write floating-point numbers. The adjoint of each is written and
compiled. Where random arguments can launch the kernel, which the sanitizer watches, the adjoint is
compared with central differences along a random direction, in single precision: an error is the
difference of both, relative to the sum of the magnitudes of all terms.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from pathlib import Path

from public_tree.gradients import Gradient, gradient
from public_tree.texts import Kernel, files, read
from workers import Worker, share

_NAMES = re.compile(r"'[^']*'")
_OTHERS = ("not smooth", "not compiled")
_FLOAT = re.compile(r"float(?!16)|f32")


def kernels_of(tree: Path, patience: float) -> list[Kernel]:
    """A kernel of each function of a repository, of floats if there is one."""
    worker = Worker(tree)
    chosen: dict[tuple[str, str], Kernel] = {}
    for file in files(tree):
        try:
            text = worker.ask(read, file, 10 * patience)
        except (EOFError, TimeoutError):
            continue
        for kernel in text.kernels:
            key = kernel.function, kernel.definition
            if key not in chosen or (
                _FLOAT.search(kernel.name) and not _FLOAT.search(chosen[key].name)
            ):
                chosen[key] = kernel
    worker.stop()
    return list(chosen.values())


def main() -> None:
    """Print the shares and the reasons."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", type=Path, nargs="+", help="checkouts of repositories")
    parser.add_argument("--count", type=int, default=200, help="kernels that are smooth")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--patience", type=float, default=120, help="seconds for a kernel")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = [
        (tree.resolve(), kernel)
        for tree in options.trees
        for kernel in kernels_of(tree.resolve(), options.patience)
    ]
    print(f"{len(drawn)} functions with kernels", flush=True)
    random.Random(options.seed).shuffle(drawn)
    results: list[tuple[str, Gradient]] = []
    workers = {tree: [Worker(tree) for _ in range(options.jobs)] for tree in {t for t, _ in drawn}}

    def smooth() -> int:
        return sum(each.state not in _OTHERS for _, each in results)

    def examine(slot: int, item: tuple[Path, Kernel]) -> None:
        tree, kernel = item
        try:
            result = workers[tree][slot].ask(gradient, (kernel, True), options.patience)
        except (EOFError, TimeoutError) as error:
            result = Gradient("failed", str(error))
        results.append((f"{tree.name}: {kernel.name}", result))
        print(results[-1], flush=True)

    share(range(options.jobs), drawn, examine, lambda: smooth() < options.count)  # type: ignore[type-var]
    for each in workers.values():
        for worker in each:
            worker.stop()
    smooth_ones = [each for _, each in results if each.state not in _OTHERS]
    for title, count in (
        ("Outcomes", Counter(each.state for each in smooth_ones)),
        ("Reasons", Counter(_NAMES.sub("...", each.reason) for each in smooth_ones if each.reason)),
        ("Comparisons", Counter(each.agreement for each in smooth_ones if each.agreement)),
    ):
        print(f"\n{title}:\n")
        for reason, number in count.most_common():
            print(f"* {number} {reason}")
    errors = [each.error for each in smooth_ones if each.agreement in ("agrees", "DIFFERS")]
    print(f"\nLargest error: {max(errors, default=0):.2g}")


if __name__ == "__main__":
    main()
