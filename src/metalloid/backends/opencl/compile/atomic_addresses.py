"""Addresses of atomic operations, as LLVM's back end for SPIR-V needs them.

It takes an address that is computed in bytes for one that is computed in elements if an atomic
operation uses it: ``getelementptr i8, ptr @x, i64 4`` became the fourth integer after @x. So such
addresses go through an integer. This is the last edit, as LLVM would undo it.
"""

from __future__ import annotations

import itertools
import re

_FUNCTION = re.compile(r"^(define [^\n]*\{\n)(.*?)(^\}\n)", re.M | re.S)
_ATOMIC = re.compile(
    r"^(?P<head>  (?:\S+ = )?(?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?(?:volatile )?)) ?"
    r"(?P<type>ptr(?: addrspace\(\d+\))?) (?P<address>%[\w.$-]+|%\"[^\"]*\"|@[\w.$-]+|"
    r"getelementptr(?: inbounds| nuw| nusw)* \((?:[^()]|(?<=addrspace)\(\d+\))*\)),", re.M,
)  # fmt: skip


def through_integers(ir: str) -> str:
    """The module in which addresses of atomic operations are integers first."""
    number = itertools.count()

    def edited(match: re.Match[str]) -> str:
        name, type, address = f"%mtl.address{next(number)}", match["type"], match["address"]
        lines = ""
        if address.startswith("getelementptr"):
            head, _, operands = address.partition("(")
            lines = f"  {name}.of = {head}{operands.removesuffix(')')}\n"
            address = f"{name}.of"
        return (
            f"{lines}  {name}.bits = ptrtoint {type} {address} to i64\n"
            f"  {name} = inttoptr i64 {name}.bits to {type}\n"
            f"{match['head'].rstrip()} {type} {name},"
        )

    return _FUNCTION.sub(lambda match: match[1] + _ATOMIC.sub(edited, match[2]) + match[3], ir)
