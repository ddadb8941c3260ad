"""The functions of simdgroups as part of the module they come from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES
from metalloid.compiler.vectorize.context import VectorizedFunction
from metalloid.compiler.vectorize.subprograms import with_subprograms

_ATTRIBUTES = re.compile(r"^attributes (#\d+) = \{([^\n]*)\}", re.M)
_DEFINED = re.compile(r"^define [^@]*@([\w.]+)\(", re.M)
_DECLARED = re.compile(r"^declare [^\n]*?@([\w.$]+)\([^\n]*\n", re.M)
#: Instructions with which LLVM joins the masks of two registers to one, and such as imply them. It
#: does so at every comparison, and takes the mask apart again where it is used.
_WITH_LONG_MASKS = re.compile(
    r"\+(avx512(?:bw|vbmi2?|bitalg|bf16|fp16|vp2intersect)|avx10[.\d-]+)\b"
)
#: What cannot do without them: numbers of less than 32 bits.
_SHORT_NUMBERS = tuple(map(re.compile, (r" x i8>", r" x i16>", r"half\b", r"bfloat\b")))
_NOT_FOR_VECTORS = re.compile(r'\b(?:noinline|optnone|mustprogress|willreturn)\b|memory\([^"]*?\) ')


def assemble(ir: str, scalar: str, functions: Sequence[VectorizedFunction], loops: str = "") -> str:
    """The module with the functions added, and the loops over simdgroups."""
    texts, nodes = with_subprograms(ir, scalar, [*(each.text for each in functions), loops])
    defined = {name for text in texts for name in _DEFINED.findall(text)}
    ir = _DECLARED.sub(lambda match: "" if match[1] in defined else match[0], ir)
    declarations = {k: v for function in functions for k, v in function.declarations.items()}
    known = set(re.findall(r"^(?:declare|define) [^\n]*?(@[\w.$]+)\(", ir, re.M))
    added = [line for name, line in declarations.items() if name not in known]
    groups = re.search(rf"^define [^\n]*@{re.escape(scalar)}\([^\n]*?((?: #\d+)+)", ir, re.M)
    attributes = _vector_attributes(ir, groups[1] if groups else "")
    module = "\n".join(
        (
            ir,
            *texts,
            f"attributes {VECTOR_ATTRIBUTES} = {{ {attributes} }}",
            "",
            *added,
            *nodes,
            "",
        )
    )
    group = 1 + max((int(number[1:]) for number, _ in _ATTRIBUTES.findall(ir)), default=-1)
    module = module.replace(VECTOR_ATTRIBUTES, f"#{group}")
    if any(pattern.search(module) for pattern in _SHORT_NUMBERS):
        return module
    return _WITH_LONG_MASKS.sub(r"-\1", module)


def _vector_attributes(ir: str, groups: str) -> str:
    """The scalar function's attributes, as far as they hold for vector code."""
    known = dict(_ATTRIBUTES.findall(ir))
    retained = " ".join(_NOT_FOR_VECTORS.sub("", known.get(group, "")) for group in groups.split())
    # Tunings for some processors would split the widest registers.
    return f'{retained} "min-legal-vector-width"="512" "prefer-vector-width"="512"'
