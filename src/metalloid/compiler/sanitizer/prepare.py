"""Keep the accesses of a kernel's text while LLVM optimises it.

LLVM loads from memory that it knows to exist although only some threads ask for it, and removes
what depends on uninitialised variables. Both change which accesses race.
"""

from __future__ import annotations

import re

_ATTRIBUTES = re.compile(r"^(attributes #\d+ = \{)", re.M)
_THREADGROUP_VARIABLE = re.compile(
    r'^(@(?:"[^"\n]*"|[\w.$-]+)) = [^\n]*\baddrspace\(3\) global ', re.M
)
_USED = "@llvm.compiler.used"
_USED_LINE = re.compile(rf"^{_USED} = [^\n]*\n", re.M)


def prepare(ir: str) -> str:
    """A module that LLVM optimises without loads of its own, and with all threadgroup variables."""
    # ThreadSanitizer's attribute; LLVM instruments nothing unless clang asks for its pass.
    ir = _ATTRIBUTES.sub(r"\1 sanitize_thread", ir)
    names = _THREADGROUP_VARIABLE.findall(ir)
    if not names:
        return ir
    used = ", ".join(f"ptr addrspacecast (ptr addrspace(3) {name} to ptr)" for name in names)
    return (
        f"{_USED_LINE.sub('', ir)}\n{_USED} = appending global [{len(names)} x ptr] [{used}], "
        'section "llvm.metadata"\n'
    )


def finish(ir: str) -> str:
    """The optimised module without what `prepare` has added to it."""
    return _USED_LINE.sub("", ir).replace(" sanitize_thread ", " ")
