"""What a kernel reads through ``constant`` pointers does not change while it runs.

Address spaces no longer tell such loads from others: here both are of the GPU's memory. Those that
are marked leave loops though stores stand between, and go through the cache for what is only read.
"""

from __future__ import annotations

import re

from metalloid.backends.cuda.compile.kernel_text import around_kernel
from metalloid.msl.signature import Signature

_LAUNCH = "%0"  # launch_data of entry.h, which begins with a word for each parameter
_WORD_BYTES = 8
_PLACE = re.compile(rf"^  (%\S+) = getelementptr [^,]*, ptr {_LAUNCH}, i64 (\d+)$")
_WORD = re.compile(r"^  (%\S+) = load ptr, ptr (%[^,\s]+),")
_DERIVED = re.compile(
    r"^  (%\S+) = (?:getelementptr|addrspacecast) .*?ptr(?: addrspace\(1\))? (%[^,\s]+)"
)
_LOAD = re.compile(
    r"^  %\S+ = load (?!volatile|atomic)[^%]*ptr(?: addrspace\(1\))? (%[^,\s]+), align"
)
_METADATA = re.compile(r"^!(\d+) = ", re.M)


def mark_unchanging(ir: str, signature: Signature) -> str:
    """Mark the loads through pointers that `signature` calls ``constant``."""
    positions = {p.position for p in signature.buffers if p.layout.space == "constant"}
    if not positions:
        return ir
    before, kernel, behind = around_kernel(ir)
    lines = kernel.split("\n")
    places = {_LAUNCH: 0}
    places |= {match[1]: int(match[2]) for line in lines if (match := _PLACE.match(line))}
    pointers = {
        match[1] for line in lines
        if (match := _WORD.match(line)) and places.get(match[2], -1) / _WORD_BYTES in positions
    }  # fmt: skip
    derived = [match.groups() for line in lines if (match := _DERIVED.match(line))]
    while more := {result for result, base in derived if base in pointers} - pointers:
        pointers |= more
    number = max((int(each) for each in _METADATA.findall(ir)), default=-1) + 1
    marked = [
        f"{line}, !invariant.load !{number}"
        if (match := _LOAD.match(line)) and match[1] in pointers else line
        for line in lines
    ]  # fmt: skip
    return before + "\n".join(marked) + f"{behind}\n!{number} = !{{}}\n"
