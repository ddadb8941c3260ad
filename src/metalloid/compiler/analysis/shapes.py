"""Shapes: how a value varies between the lanes of a simdgroup.

A value is *indexed* if lane i has base + offsets[i], with offsets that are known now; the base,
which is the value of lane 0, is computed once, as a scalar. With all offsets zero it is *uniform*.
Any other value is *varying* and lives in a vector register. (Parsimony, CGO 2023, section 4.3; the
alignment of the base is our addition: it is what keeps ``index % 8`` and ``index & -16`` indexed.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I64, Array, Integer, Pointer, Struct, Type, Vector

MAX_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a value.

    Attributes
    ----------
    offsets : tuple of int, or None
        What lane i has more than lane 0; None if the value is varying.
    align : int
        The base is a multiple of ``2 ** align``.
    exact : bool
        Whether base + offsets is the value of every lane. Otherwise it is that of every lane which
        could use it as an address: a 32-bit index may have wrapped before it was widened.
    wraps : bool
        Whether base + offset, as an unsigned number, may exceed the type in an active lane.
    """

    offsets: tuple[int, ...] | None
    align: int = 0
    exact: bool = True
    wraps: bool = True

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes have the same."""
        return self.offsets is not None and not any(self.offsets)

    @property
    def is_varying(self) -> bool:
        """Whether nothing is known."""
        return self.offsets is None

    @property
    def stride(self) -> int | None:
        """Difference of neighbouring lanes, if it is the same everywhere."""
        if self.offsets is None:
            return None
        if len(self.offsets) == 1:
            return 0
        step = self.offsets[1]
        steady = all(offset == i * step for i, offset in enumerate(self.offsets))
        return step if steady else None


VARYING = Shape(None)


def uniform(width: int, align: int = 0) -> Shape:
    """The shape of what all lanes have in common."""
    return Shape((0,) * width, align, wraps=False)


def consecutive(width: int, align: int = 0) -> Shape:
    """The shape of a count that goes up by one from lane to lane and does not wrap."""
    return Shape(tuple(range(width)), align, wraps=False)


def join(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of what is the one or the other, for all lanes alike; None stands for unknown."""
    if a is None or b is None:
        return a or b
    if a.offsets != b.offsets:
        return VARYING
    return Shape(a.offsets, min(a.align, b.align), a.exact and b.exact, a.wraps or b.wraps)


def alignment_of(number: int) -> int:
    """The number of trailing zeros of `number`."""
    return (number & -number).bit_length() - 1 if number else MAX_ALIGNMENT


def lane_step(alloca: Instruction) -> int:
    """Bytes from a lane's array, or its first element, to that of the next lane."""
    return alloca.lane_step or alloca.source.size


def shape_of(instruction: Instruction, shapes: list[Shape], width: int) -> Shape:
    """Shape of a result from those of the operands; instructions without side effects only.

    Parameters
    ----------
    instruction : Instruction
    shapes : list of Shape
        Of its operands; constants are uniform.
    width : int
        Lanes of the simdgroup.
    """
    rule = _RULES.get(instruction.op)
    if rule is not None:
        by_rule = rule(instruction, shapes, width)
        if by_rule is not None:
            return by_rule
    return uniform(width) if all(shape.is_uniform for shape in shapes) else VARYING


def _add(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    a, b = shapes
    if a.offsets is None or b.offsets is None:
        return None
    sign = -1 if instruction.op == "sub" else 1
    offsets = tuple(x + sign * y for x, y in zip(a.offsets, b.offsets, strict=True))
    # The promise is for active lanes. A sum that does not wrap there does not in lane 0, where it
    # is the least; a difference may, as that of `i - n` after `if (i >= n)`.
    aligned = instruction.op == "or" or ("nuw" in instruction.flags and sign > 0)
    wraps = a.wraps or b.wraps or not aligned
    return Shape(offsets, min(a.align, b.align), a.exact and b.exact, wraps)


def _or(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    return _add(instruction, shapes, width) if "disjoint" in instruction.flags else None


def _multiply(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    for k in (0, 1):
        factor = instruction.operands[k].integer
        other = shapes[1 - k]
        if factor is not None:
            if other.offsets is None:
                return None
            return _scaled(instruction, other, factor)
    if shapes[0].is_uniform and shapes[1].is_uniform:
        return uniform(width, min(shapes[0].align + shapes[1].align, MAX_ALIGNMENT))
    return None


def _shift_left(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    amount = instruction.operands[1].integer
    if amount is None or shapes[0].offsets is None:
        return None
    return _scaled(instruction, shapes[0], 1 << amount)


def _scaled(instruction: Instruction, shape: Shape, factor: int) -> Shape:
    assert shape.offsets is not None
    offsets = tuple(offset * factor for offset in shape.offsets)
    align = min(shape.align + alignment_of(factor), MAX_ALIGNMENT)
    wraps = shape.wraps or "nuw" not in instruction.flags
    return Shape(offsets, align, shape.exact, wraps)


def is_aligned_to_lanes(shape: Shape) -> bool:
    """Whether base and offsets have no bit in common."""
    offsets = shape.offsets
    return (
        offsets is not None and shape.exact and min(offsets) >= 0
        and max(offsets) < 1 << shape.align
    )  # fmt: skip


def _and(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    for k in (0, 1):
        mask, shape = instruction.operands[k].integer, shapes[1 - k]
        if mask is None or not is_aligned_to_lanes(shape) or shape.offsets is None:
            continue
        # Bits of base and offset do not mix, so the mask goes to each.
        offsets = tuple(offset & mask for offset in shape.offsets)
        low = alignment_of(~mask)  # a mask of ones from bit 0 on, up to here
        cleared = mask > 0 and mask & (mask + 1) == 0 and low <= shape.align
        align = MAX_ALIGNMENT if cleared else max(shape.align, alignment_of(mask))
        return Shape(offsets, align, wraps=False)
    return None


def _shift_right(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    amount, shape = instruction.operands[1].integer, shapes[0]
    if amount is None or not is_aligned_to_lanes(shape) or shape.offsets is None:
        return None
    offsets = tuple(offset >> amount for offset in shape.offsets)
    return Shape(offsets, max(shape.align - amount, 0), wraps=False)


def _signed_shift_right(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    type, offsets = instruction.type, shapes[0].offsets
    if not isinstance(type, Integer) or offsets is None or max(offsets) >> (type.bits - 1):
        return None
    return _shift_right(instruction, shapes, width)  # the sign is the base's


def _divide(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    divisor = instruction.operands[1].integer
    if divisor is None or divisor <= 0 or divisor & (divisor - 1):
        return None
    amount = Value(instruction.type, str(alignment_of(divisor)))
    mask = Value(instruction.type, str(divisor - 1))
    first = instruction.operands[0]
    if instruction.op == "udiv":
        return _shift_right(Instruction("lshr", operands=[first, amount]), shapes, width)
    return _and(Instruction("and", operands=[first, mask]), shapes, width)


def _compare(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    """Where the bits of the offsets decide nothing, as in ``index < 64``, the base does."""
    shape, limit = shapes
    if (
        instruction.predicate in ("eq", "ne")
        or not limit.is_uniform
        or not is_aligned_to_lanes(shape)
    ):
        return None
    assert shape.offsets is not None
    number, align = instruction.operands[1].integer, limit.align
    if number is not None and instruction.predicate in ("ugt", "ule", "sgt", "sle"):
        align = alignment_of(number + 1)  # as index > 63
    elif instruction.predicate not in ("ult", "uge", "slt", "sge"):
        return None
    return uniform(width) if max(shape.offsets) < 1 << align else None


def _widen(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    shape, source = shapes[0], instruction.operands[0].type
    if shape.offsets is None or not isinstance(source, Integer) or source.bits == 1:
        return None
    # Without a carry from the offsets no lane wraps, nor changes its sign.
    exact = shape.is_uniform or is_aligned_to_lanes(shape)
    exact = exact or (instruction.op == "zext" and not shape.wraps)
    return Shape(shape.offsets, shape.align, shape.exact and exact, wraps=False)


def _preserved(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    shape = shapes[0]
    return None if shape.offsets is None else Shape(shape.offsets, shape.align, shape.exact)


def _choose(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    return join(shapes[1], shapes[2]) if shapes[0].is_uniform else None


def _address(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    total = [0] * width
    exact = True
    for shape, size in zip(shapes, steps(instruction), strict=True):
        if shape.offsets is None:
            return None
        if size is not None:
            total = [sum_ + o * size for sum_, o in zip(total, shape.offsets, strict=True)]
        exact = exact and shape.exact
    return Shape(tuple(total), exact=exact)


def steps(instruction: Instruction) -> list[int | None]:
    """The factor of each operand of a ``getelementptr``; None for members of structs."""
    sizes: list[int | None] = [1]
    inside: Type = instruction.source
    for number, index in enumerate(instruction.operands[1:]):
        if number == 0:
            sizes.append(inside.size)
        elif isinstance(inside, Struct):
            sizes.append(None)
            inside = inside.members[index.integer or 0]
        else:
            assert isinstance(inside, Array | Vector)
            inside = inside.element
            sizes.append(inside.size)
    return sizes


def _pointer_cast(instruction: Instruction, shapes: list[Shape], width: int) -> Shape | None:
    types = instruction.operands[0].type, instruction.type
    wide = all(isinstance(type, Pointer) or type == I64 for type in types)
    return _preserved(instruction, shapes, width) if wide else None


def _matrix(instruction: Instruction, shapes: list[Shape], width: int) -> Shape:
    return uniform(width)  # a value of the simdgroup


def _element(instruction: Instruction, shapes: list[Shape], width: int) -> Shape:
    return VARYING


_Rule = Callable[[Instruction, list[Shape], int], Shape | None]
_RULES: dict[str, _Rule] = {
    "add": _add, "sub": _add, "or": _or, "mul": _multiply, "shl": _shift_left,
    "and": _and, "lshr": _shift_right, "ashr": _signed_shift_right,
    "udiv": _divide, "urem": _divide, "icmp": _compare,
    "zext": _widen, "sext": _widen, "trunc": _preserved, "freeze": _preserved,
    "getelementptr": _address, "select": _choose, "bitcast": _pointer_cast,
    "ptrtoint": _pointer_cast, "inttoptr": _pointer_cast,
    "to_matrix": _matrix, "load_matrix": _matrix, "of_matrix": _element,
}  # fmt: skip
