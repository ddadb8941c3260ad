"""Integers as vectors of bits, which LLVM's back end for SPIR-V cannot compile.

LLVM makes them of a ``select`` by the bits of a vector: ``bitcast <2 x i8> %x to <16 x i1>``, of
which single elements are used.
"""

from __future__ import annotations

import functools
import re

_FUNCTION = re.compile(r"^(define [^\n]*\{\n)(.*?)(^\}\n)", re.M | re.S)
_BITCAST = re.compile(
    r"^  (?P<name>%[\w.$-]+) = bitcast (?P<type>(?:<\d+ x )?i(?P<bits>\d+)>?) (?P<value>%[\w.$-]+)"
    r" to <\d+ x i1>\n", re.M,
)  # fmt: skip


def extract_bits(ir: str) -> str:
    """The module in which such elements are bits of an integer."""
    return _FUNCTION.sub(lambda match: match[1] + _without_bitcasts(match[2]) + match[3], ir)


def _without_bitcasts(body: str) -> str:
    for bitcast in _BITCAST.finditer(body):
        name = re.escape(bitcast["name"])
        element = rf"^  (%[\w.$-]+) = extractelement <\d+ x i1> {name}, i64 (\d+)$"
        body = re.sub(element, functools.partial(_bit, bitcast), body, flags=re.M)
        others = body.replace(bitcast[0], "")
        body = body if re.search(rf"{name}\b", others) else others
    return body


def _bit(bitcast: re.Match[str], element: re.Match[str]) -> str:
    bits, name = int(bitcast["bits"]), element[1]
    index, bit = divmod(int(element[2]), bits)
    value, lines = bitcast["value"], ""
    if bitcast["type"].startswith("<"):
        value = f"{name}.integer"
        lines = f"  {value} = extractelement {bitcast['type']} {bitcast['value']}, i64 {index}\n"
    return (
        f"{lines}  {name}.bit = and i{bits} {value}, {1 << bit}\n"
        f"  {name} = icmp ne i{bits} {name}.bit, 0"
    )
