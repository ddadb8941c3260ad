"""Vectors of one element, which SPIR-V does not have, as scalars.

LLVM's optimiser computes with them where a kernel fills a vector with a number from memory.
"""

from __future__ import annotations

import re

_NAME = r'%(?:[\w.$-]+|"[^"\n]*")'
_TYPE = r"<1 x (\w+)>"
_NUMBER = r"(?:splat \([a-z]\w* ([^()\n]*)\)|<[a-z]\w* ([^<>,\n]*)>)"
_CONSTANT = re.compile(rf"({_TYPE} ){_NUMBER}")
_SECOND_CONSTANT = re.compile(rf"({_TYPE} [^,\n]+, ){_NUMBER}")
_EXTRACT = re.compile(rf"^(  {_NAME} = )extractelement {_TYPE} ([^,\n]+), i\d+ 0", re.M)
_INSERT = re.compile(rf"^(  {_NAME} = )insertelement {_TYPE} [^,\n]+, (\w+ [^,\n]+), i\d+ 0", re.M)
#: From a vector of one to a longer one, and from a longer one to one of one.
_LENGTHEN = re.compile(
    rf"^(  %)([\w.$-]+)( = )shufflevector {_TYPE} ([^,\n]+), <1 x \w+> poison, "
    r"(<(\d+) x i32> [^\n]*)$", re.M,
)  # fmt: skip
_SHORTEN = re.compile(
    rf"^(  {_NAME} = )shufflevector (<\d+ x \w+> [^,\n]+), <\d+ x \w+> poison, "
    r"<1 x i32> (?:(\d+)|zeroinitializer)", re.M,
)  # fmt: skip
_INTRINSIC = re.compile(r"(@llvm\.[\w.]*?\.)v1(?=[fi]\d+)")
_DECLARATION = re.compile(r"^declare [^\n]*(@llvm\.[\w.]+)\([^\n]*\n", re.M)


def scalarize_vectors_of_one(ir: str) -> str:
    """The module with scalars for vectors of one element."""
    if "<1 x " not in ir:
        return ir
    for constant in (_CONSTANT, _SECOND_CONSTANT):
        ir = constant.sub(lambda match: match[1] + (match[3] or match[4]), ir)
    ir = _LENGTHEN.sub(
        r"\1one.\2\3insertelement <\7 x \4> poison, \4 \5, i64 0" "\n"
        r"\1\2\3shufflevector <\7 x \4> %one.\2, <\7 x \4> poison, \6", ir,
    )  # fmt: skip
    ir = _SHORTEN.sub(lambda match: f"{match[1]}extractelement {match[2]}, i64 {match[3] or 0}", ir)
    ir = _EXTRACT.sub(r"\1bitcast \2 \3 to \2", ir)
    ir = _INSERT.sub(r"\1bitcast \3 to \2", ir)
    return _without_repetitions(_INTRINSIC.sub(r"\1", re.sub(_TYPE, r"\1", ir)))


def _without_repetitions(ir: str) -> str:
    """The module with one declaration of each intrinsic: its scalar form may have had one."""
    declared: set[str] = set()

    def once(match: re.Match[str]) -> str:
        is_first = match[1] not in declared
        declared.add(match[1])
        return match[0] if is_first else ""

    return _DECLARATION.sub(once, ir)
