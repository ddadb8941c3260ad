"""Races that the sanitizer finds in the Indigo suite: ``python benchmarks/indigo.py FOLDER``.

The folder is ``indigo`` of the HiRace artifact (JohnJacobsonIII/HiRace-Artifact-SC24 on GitHub). It
has 590 CUDA kernels over graphs, whose names say which defects they have, and six graphs. Here the
kernels are translated to Metal. Those with a ``boundsBug`` run twice: on arrays of the sizes that
the suite has, and on larger ones, where accesses stay inside, to find the races of other defects.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from timing import table

import metalloid as mtl

THREADS, BLOCKS = 256, 1024  # as in the artifact
_PRELUDE = """
#include <metal_stdlib>
using namespace metal;
typedef int data_t;
#define ATOMIC(name, function) \\
    inline int name(device int* p, int v) \\
    { return function((device atomic_int*)p, v, memory_order_relaxed); }
ATOMIC(atomicAdd, atomic_fetch_add_explicit)
ATOMIC(atomicMax, atomic_fetch_max_explicit)
ATOMIC(atomicMin, atomic_fetch_min_explicit)
ATOMIC(atomicOr, atomic_fetch_or_explicit)
ATOMIC(atomicExch, atomic_exchange_explicit)
#define SYNC threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
inline int count_of_threads(bool vote, threadgroup atomic_int* votes, bool is_first) {
    if (is_first) atomic_store_explicit(votes, 0, memory_order_relaxed);
    SYNC;
    if (vote) atomic_fetch_add_explicit(votes, 1, memory_order_relaxed);
    SYNC;
    int count = atomic_load_explicit(votes, memory_order_relaxed);
    SYNC;
    return count;
}
inline uint ballot(bool vote) { return uint(ulong(simd_vote::vote_t(simd_ballot(vote)))); }
"""
_HEAD = """kernel void test_kernel(
    device int* nindex, device int* edges_, device data_t* data1, device data_t* data2,
    constant int& numv, uint3 thread_ [[thread_position_in_threadgroup]],
    uint3 block_ [[threadgroup_position_in_grid]], uint3 size_ [[threads_per_threadgroup]],
    uint3 blocks_ [[threadgroups_per_grid]])
{
  const int3 threadIdx = int3(thread_), blockIdx = int3(block_);
  const int3 blockDim = int3(size_), gridDim = int3(blocks_);
  threadgroup atomic_int votes_;
  device int* nlist = edges_ + FIRST;
"""
_FIRST = 1  # edges before the first one, in padded arrays
_REPLACEMENTS = (
    (r"__shared__", "threadgroup"),
    (r"__syncthreads\(\)", "SYNC"),
    (r"__syncthreads_(?:or|count)\(", "COUNT("),
    (r"__shfl_xor_sync\(~0, ", "simd_shuffle_xor("),
    (r"__shfl_up_sync\(~0, ", "simd_shuffle_up("),
    (r"__any_sync\(~0, ", "simd_any("),
    (r"__ballot_sync\(~0, ", "ballot("),
    (r"__popc\(", "popcount("),
    (r"__device__ (\w+ \w+)\(data_t\*", r"inline \1(device data_t*"),
    (r"__global__ void test_kernel\([^)]*\)\s*\{", _HEAD),
)
_COUNT = "#define COUNT(vote) count_of_threads(vote, &votes_, threadIdx.x == 0)\n"
_CALL = re.compile(r"__\w+\(|__\w+__")


class Graph(NamedTuple):
    """A graph in compressed sparse rows."""

    name: str
    nindex: np.ndarray
    nlist: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Graph:
        """Read a file of the Galois or ECL format."""
        words = np.fromfile(path, np.int32)
        nodes, edges = words[:2]
        nindex = words[2 : nodes + 3]
        return cls(path.stem, nindex.copy(), words[nodes + 3 : nodes + 3 + edges].copy())

    def arguments(self, is_padded: bool) -> tuple[object, ...]:
        """Arguments of a kernel, as indigo_cuda.h makes them; padded by a row for each thread."""
        nodes, edges = len(self.nindex) - 1, len(self.nlist)
        random = np.random.default_rng(1)
        data = [random.integers(0, n, max(nodes, edges), dtype=np.int32) for n in (nodes, edges)]
        for values in data:
            values[0] = 0
        arrays = [self.nindex.copy(), self.nlist.copy(), *data]
        if is_padded:
            before = (0, _FIRST, 0, 0)
            padding = THREADS * BLOCKS + 1
            arrays = [np.pad(a, (n, padding)) for a, n in zip(arrays, before, strict=True)]
        return *arrays, nodes


def translated(text: str) -> str:
    """The kernel of a file of the suite in Metal."""
    text = text[text.index('#include "indigo_cuda.h"') :].partition("\n")[2]
    text = text[: text.index("void serial_code")]
    for pattern, replacement in _REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    unknown = _CALL.findall(text)
    assert not unknown, unknown
    return _PRELUDE + _COUNT + text


def kinds_of_findings(text: str, graphs: Sequence[Graph], is_padded: bool) -> list[set[str]]:
    """Kinds of findings of a test, by graph."""
    first = _FIRST if is_padded else 0
    lib = mtl.library(text, defines={"FIRST": first}, device="cpu", check=True)
    results = []
    for graph in graphs:
        with mtl.checking(raises=False) as findings:
            try:
                arguments = graph.arguments(is_padded)
                lib.test_kernel(*arguments, threads=THREADS * BLOCKS, group_size=THREADS)
                kinds = set()
            except mtl.KernelFault:
                kinds = {"outside"}
        results.append(kinds | {finding.kind for finding in findings})
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of the names of tests")
    options = parser.parse_args(arguments)
    graphs = [Graph.read(path) for path in sorted((options.folder / "input").glob("*.egr"))]
    totals, counts = Counter[str](), Counter[tuple[str, str]]()
    surprises = []
    for path in sorted((options.folder / "indigo_sources").glob("*/*.cu")):
        if options.only not in path.stem:
            continue
        text = translated(path.read_text())
        is_outside = "boundsBug" in path.stem
        label = "race" if "Bug" in path.stem.replace("boundsBug", "") else "correct"
        totals[label] += 1
        for graph, kinds in zip(graphs, kinds_of_findings(text, graphs, is_outside), strict=True):
            counts[graph.name, label] += "race" in kinds
            if kinds != ({"race"} if label == "race" else set()):
                surprises.append((path.stem, graph.name, ", ".join(sorted(kinds)) or "nothing"))
        if is_outside:
            totals["outside"] += 1
            for graph, kinds in zip(graphs, kinds_of_findings(text, graphs, False), strict=True):
                counts[graph.name, "outside"] += "outside" in kinds
    rows = [
        (
            graph.name,
            f"{counts[graph.name, 'race']} of {totals['race']}",
            f"{counts[graph.name, 'correct']} of {totals['correct']}",
            f"{counts[graph.name, 'outside']} of {totals['outside']}",
        )
        for graph in graphs
    ]
    head = ("graph", "races found", "false alarms", "outside accesses found")
    table(f"Indigo: {totals['race'] + totals['correct']} tests", head, rows)
    table("Other findings than the name says", ("test", "graph", "findings"), surprises)


if __name__ == "__main__":
    main()
