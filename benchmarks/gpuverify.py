"""GPUVerify's tests with the sanitizer: ``python benchmarks/gpuverify.py FOLDER --jobs 16``.

The folder is a checkout of mc-imperial/gpuverify. Its files in OpenCL C and CUDA are translated to
Metal (`opencl_text`), and their kernels launched with the sizes that each says. GPUVerify proves
that kernels are correct for all inputs; a launch has one. So each kernel is launched with several,
and a defect that only another input shows is missed. Annotations are left out, but for those
that restrict inputs.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from opencl_text import NotPortable, translated
from timing import table
from workers import Worker, share

import metalloid as mtl

#: Bytes of each array; and the greatest launch, in threads.
_BYTES, _MAX_THREADS, _MAX_GROUP = 1 << 20, 1 << 14, 1024
#: Bytes of threadgroup memory.
_MAX_MEMORY = 16384
#: Scalars, and what arrays hold.
_INPUTS = ((8, "zeros"), (64, "indices"), (3, "random"), (0, "ones"), (100, "large"))
_PATIENCE = 60
_DEFINE = re.compile(r"^//[^\n]*?\s-D\s*(\w+)(?:=(\w+))?", re.M)


class Label(NamedTuple):
    """The comments at the top of a file.

    Attributes
    ----------
    expected : str
        ``"correct"``, ``"race"``, ``"divergence"``, ``"outside"`` or, where it is not said,
        ``"defect"``.
    groups, size : tuple of int
    """

    expected: str
    groups: tuple[int, int, int]
    size: tuple[int, int, int]


class Outcome(NamedTuple):
    """Findings in a file, or why it was not launched."""

    expected: str
    kinds: frozenset[str]
    reason: str
    text: str = ""


def label(source: str) -> Label:
    """The label of a file.

    Raises
    ------
    NotPortable
        If it is about something else than the sanitizer looks for.
    """
    comments = "\n".join(re.findall(r"^\s*//(.*)", source.replace("\r", ""), re.M))
    first, _, rest = comments.partition("\n")
    options = rest.partition("\n")[0]
    verdict = first.strip().lower()
    if verdict not in ("pass", "xfail:not_all_verified"):
        raise NotPortable("the label is about errors of the tool")
    if "--warp-sync" in options:
        raise NotPortable("the label assumes that warps are in step")
    if "--no-benign-tolerance" in options:
        raise NotPortable("the label counts writes of the same value")
    if re.search(r"--only-(?:divergence|log)|checkArrays|--check-array=", options):
        raise NotPortable("the label is about some accesses only")
    if "--kernel-args" in options:
        raise NotPortable("the label is about one input")
    expected = "correct"
    if verdict != "pass":
        rest = rest.lower()
        if "race" in rest.partition("\n")[2]:
            expected = "race"
        elif "divergen" in rest or "barrier may be reached" in rest:
            expected = "divergence"
        elif "out-of-bounds" in rest:
            expected = "outside"
        elif "null pointer" in rest:
            raise NotPortable("the label is about null pointers")
        elif re.search(r"assert|requires|ensures|invariant|precondition", rest) or re.search(
            r"__\w*(?:assert|requires|ensures|invariant)", source
        ):
            raise NotPortable("the label is about annotations")
        else:
            expected = "defect"
    size = _size(options, "local_size|blockDim", 64)
    if "--global_size" in options:
        threads = _size(options, "global_size", 64)
        groups = tuple(-(-n // s) for n, s in zip(threads, size, strict=True))
    else:
        groups = _size(options, "num_groups|gridDim", 4)
    if "--only-intra-group" in options:
        groups = (1, 1, 1)
    while np.prod(size) > _MAX_GROUP:
        size = tuple(n // 2 if n == max(size) else n for n in size)
    while np.prod(size) * np.prod(groups) > _MAX_THREADS and max(groups) > 2:
        groups = tuple(min(n, max(max(groups) // 2, 2)) for n in groups)
    return Label(expected, groups, size)


def _size(options: str, name: str, default: int) -> tuple[int, ...]:
    match = re.search(rf"--(?:{name})=(\[[^\]]*\]|[\d*,]+)", options)
    numbers = re.findall(r"[\d*]+", match[1]) if match else [str(default)]
    sizes = [default if "*" in number else int(number) for number in numbers]
    return tuple([*sizes, 1, 1][:3])


def arguments(kernel: mtl.Kernel, number: int, contents: str, size: int) -> Iterator[Any]:
    """Arguments of a kernel: arrays of numbers, and scalars."""
    rng = np.random.default_rng(number)
    for parameter in kernel.signature.arguments:
        dtype, is_scalar = kernel.dtype(parameter.name), parameter.name.endswith("_given")
        count = 1 if is_scalar else _BYTES // dtype.itemsize
        base = dtype.base if dtype.base.names is None else np.dtype(np.uint8)
        elements = count * dtype.itemsize // base.itemsize
        values = {
            "zeros": np.zeros(elements), "ones": np.ones(elements),
            "indices": np.arange(elements) % 128, "random": rng.integers(0, 32, elements),
            "large": np.full(elements, 1000),
        }[contents]  # fmt: skip
        values = np.full(elements, number) if is_scalar else values
        values = values.astype(base)
        yield values.view(dtype) if dtype.names else values.reshape(count, *dtype.shape)
    memories = len(kernel.signature.threadgroup)
    for _ in range(memories):
        yield mtl.threadgroup_memory(min(64 * size, _MAX_MEMORY // memories // 16 * 16))


def outcome(folder: Path, file: str) -> Outcome:
    """Launch the kernels of a file."""
    source = (folder / file).read_text("utf-8", "replace")
    try:
        expected, groups, size = label(source)
        text, kernels = translated(source, file.endswith(".cu"))
        defines = {name: value or 1 for name, value in _DEFINE.findall(source)}
        lib = mtl.library(text, device="cpu", check=True, defines=defines)
        entries = [lib[name] for name in kernels]
    except NotPortable as why:
        return Outcome("", frozenset(), str(why))
    except mtl.MetalloidError as error:
        is_undefined = "this text does not define" in str(error)
        reason = "functions without a definition" if is_undefined else "does not compile"
        return Outcome("", frozenset(), reason, str(error)[:400])
    kinds, text, launches = set[str](), "", 0
    grid = tuple(n * s for n, s in zip(groups, size, strict=True))
    for kernel in entries:
        for number, contents in _INPUTS:
            with mtl.checking(raises=False) as findings:
                try:
                    given = list(arguments(kernel, number, contents, int(np.prod(size))))
                    kernel(*given, threads=grid, group_size=size, timeout=10)
                    launches += 1
                except mtl.KernelFault as error:
                    is_divergent = "barrier" in error.reason
                    # GPUVerify's arrays have no ends.
                    kinds.add("divergence" if is_divergent else "outside")
                    launches += is_divergent or expected == "outside"
                    text = text or str(error)[:300]
                except mtl.MetalloidError as error:
                    return Outcome("", frozenset(), "the launch is refused", str(error))
            kinds |= {finding.kind for finding in findings}
            text = findings[0].describe()[:600] if findings else text
    if not launches and not kinds - {"outside"}:
        return Outcome("", frozenset(), "accesses outside of arrays, or no end", text)
    return Outcome(expected, frozenset(kinds), "", text)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of GPUVerify")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="part of the names of files")
    parser.add_argument("--verbose", action="store_true", help="print why files are not portable")
    options = parser.parse_args(arguments)
    folder = options.folder / "testsuite"
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("kernel.c[lu]"))]
    files = [file for file in files if options.only in file]
    outcomes: dict[str, Outcome] = {}
    workers = [Worker(folder) for _ in range(options.jobs)]

    def run(worker: Worker, file: str) -> None:
        try:
            outcomes[file] = worker.ask(outcome, file, _PATIENCE)
        except (EOFError, TimeoutError) as error:
            outcomes[file] = Outcome("", frozenset(), str(error))

    share(workers, files, run)
    for worker in workers:
        worker.stop()
    show(outcomes, options.verbose)


def is_right(result: Outcome) -> bool:
    """Whether the findings are those of the label."""
    kinds = result.kinds
    if result.expected == "correct":
        return not kinds & {"race", "divergence"}
    if result.expected == "defect":
        return bool(kinds & {"race", "divergence", "outside"})
    return result.expected in kinds


def show(outcomes: dict[str, Outcome], verbose: bool) -> None:
    """Print the tables."""
    portable = {file: result for file, result in outcomes.items() if not result.reason}
    rows = []
    for expected in ("race", "divergence", "outside", "defect", "correct"):
        mine = [result for result in portable.values() if result.expected == expected]
        rows.append((expected, len(mine), sum(map(is_right, mine))))
    table(f"{len(portable)} portable of {len(outcomes)} files", ("label", "files", "agree"), rows)
    reasons = Counter(result.reason for result in outcomes.values() if result.reason)
    table("Not portable", ("files", "reason"), [(n, reason) for reason, n in reasons.most_common()])
    print("\nOther than the label:")
    for file, result in portable.items():
        if not is_right(result):
            print(f"* {file}: {result.expected}; {', '.join(sorted(result.kinds)) or 'nothing'}")
            print(*(f"    {line}" for line in result.text.splitlines() if verbose), sep="\n")
    if verbose:
        for file, result in outcomes.items():
            if result.reason:
                print(f"{file}: {result.reason}: {result.text}")


if __name__ == "__main__":
    main()
