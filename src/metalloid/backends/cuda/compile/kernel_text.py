"""The kernel's function in the text of a module, for passes that work line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from metalloid.compiler.frontend.entry import ENTRY_SYMBOL

#: Reads the mask of the threads of the warp that are converged at the moment.
ACTIVE = "@llvm.nvvm.activemask"
#: Name of the kernel's entry block, which has no label: the number after %0, the only parameter.
FIRST = "%1"
LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')
_FUNCTION = re.compile(rf"^define [^\n]*@{ENTRY_SYMBOL}\(.*?^\}}\n", re.M | re.S)


def around_kernel(ir: str) -> tuple[str, str, str]:
    """The text before the kernel's function, the function, and the text after it."""
    found = _FUNCTION.search(ir)
    assert found is not None
    return ir[: found.start()], found[0], ir[found.end() :]


def with_blocks(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line with the name of its block."""
    block = FIRST
    for line in lines:
        if label := LABEL.match(line):
            block = f"%{label[1]}"
        yield block, line
