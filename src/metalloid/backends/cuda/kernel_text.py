"""The kernel's function in the text of a module, for passes that work line by line."""

from __future__ import annotations

import re

from metalloid.compiler.entry import ENTRY_SYMBOL

LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')
_FUNCTION = re.compile(rf"^define [^\n]*@{ENTRY_SYMBOL}\(.*?^\}}\n", re.M | re.S)


def around_kernel(ir: str) -> tuple[str, str, str]:
    """What stands before the kernel's function, the function, and what stands behind it."""
    found = _FUNCTION.search(ir)
    assert found is not None
    return ir[: found.start()], found[0], ir[found.end() :]
