"""Instructions of the processor that the math headers ask for, by name.

``float_math/instructions_avx512.h`` defines them for one thread.
"""

from __future__ import annotations

#: LLVM's name of each, and an immediate operand if it has one.
_AVX512 = {
    "@__avx512_scalef": ("scalef", ""),
    "@__avx512_getexp": ("getexp", ""),
    "@__avx512_getmant": ("getmant", "15"),  # into [3/4, 3/2), NaN for negative numbers
    "@__avx512_getmant_from_1": ("getmant", "4"),  # into [1, 2), without the sign
}
#: Adds the products of two pairs of bfloats, whose bits are floats, to a float.
_BFLOAT_DOT = "@__avx512_dot_of_bfloats"
_CURRENT_ROUNDING = "4"
#: Lanes of the widest register, the one whose instructions can round otherwise.
MAX_LANES = 16


def is_instruction(callee: str) -> bool:
    """Whether it is one of them, from numbers to a number.

    Examples
    --------
    >>> is_instruction("@__avx512_scalef"), is_instruction("@llvm.fma.f32")
    (True, False)
    """
    return callee in _AVX512 or callee == _BFLOAT_DOT


def is_lanewise(callee: str) -> bool:
    """Whether it works on each lane alone, as intrinsics do, and is one instruction or a few."""
    return callee.startswith("@llvm.") or is_instruction(callee)


def operand_type(callee: str, index: int, lanes: int) -> str:
    """The type of an operand of LLVM's intrinsic, which a vector of floats is cast to."""
    return f"<{2 * lanes} x bfloat>" if callee == _BFLOAT_DOT and index else f"<{lanes} x float>"


def vector_call(callee: str, lanes: int, vectors: list[str]) -> tuple[str, list[tuple[str, str]]]:
    """LLVM's intrinsic for registers of 4, 8 or 16 lanes, and types and values of its operands."""
    if callee == _BFLOAT_DOT:
        given = [(operand_type(callee, k, lanes), vector) for k, vector in enumerate(vectors)]
        return f"@llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}", given
    name, immediate = _AVX512[callee]
    wide = f"<{lanes} x float>"
    given = [(wide, vector) for vector in vectors]
    if immediate:
        given.append(("i32", immediate))
    given += [(wide, "zeroinitializer"), (f"i{max(lanes, 8)}", "-1")]  # for lanes left out: none
    if lanes == MAX_LANES:
        given.append(("i32", _CURRENT_ROUNDING))
    return f"@llvm.x86.avx512.mask.{name}.ps.{32 * lanes}", given
