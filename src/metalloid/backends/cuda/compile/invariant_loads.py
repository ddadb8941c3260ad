"""Tags loads through ``constant`` pointers as invariant.

Address spaces no longer distinguish such loads, as ``constant`` and ``device`` memory are both
global memory on the GPU. LLVM hoists tagged loads out of loops with stores, and uses the read-only
cache for them (``ld.global.nc``).
"""

from __future__ import annotations

import re

from metalloid.backends.cuda.compile.kernel_text import around_kernel
from metalloid.msl.signature import Signature

_LAUNCH = "%0"  # launch_data of entry.h, which begins with a word for each parameter
_WORD_BYTES = 8
_OFFSET = re.compile(rf"^  (%\S+) = getelementptr [^,]*, ptr {_LAUNCH}, i64 (\d+)$")
_WORD = re.compile(r"^  (%\S+) = load ptr, ptr (%[^,\s]+),")
_DERIVED = re.compile(
    r"^  (%\S+) = (?:getelementptr|addrspacecast) .*?ptr(?: addrspace\(1\))? (%[^,\s]+)"
)
_LOAD = re.compile(
    r"^  %\S+ = load (?!volatile|atomic)[^%]*ptr(?: addrspace\(1\))? (%[^,\s]+), align"
)
_METADATA = re.compile(r"^!(\d+) = ", re.M)


def tag_invariant_loads(ir: str, signature: Signature) -> str:
    """Tag the loads through pointers that are ``constant`` in `signature`."""
    positions = {p.position for p in signature.buffers if p.layout.space == "constant"}
    if not positions:
        return ir
    before, kernel, after = around_kernel(ir)
    lines = kernel.split("\n")
    offsets = {_LAUNCH: 0}
    offsets |= {match[1]: int(match[2]) for line in lines if (match := _OFFSET.match(line))}
    pointers = {
        match[1] for line in lines
        if (match := _WORD.match(line)) and offsets.get(match[2], -1) / _WORD_BYTES in positions
    }  # fmt: skip
    derived = [match.groups() for line in lines if (match := _DERIVED.match(line))]
    while more := {result for result, base in derived if base in pointers} - pointers:
        pointers |= more
    number = max((int(n) for n in _METADATA.findall(ir)), default=-1) + 1
    tagged = [
        f"{line}, !invariant.load !{number}"
        if (match := _LOAD.match(line)) and match[1] in pointers else line
        for line in lines
    ]  # fmt: skip
    return before + "\n".join(tagged) + f"{after}\n!{number} = !{{}}\n"
