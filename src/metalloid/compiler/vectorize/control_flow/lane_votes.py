"""Whether any lane, or every lane, passes a comparison: from the first lane and the last.

``index < n`` holds for some lane if it does for the lowest index, and for all if it does for the
highest. So a uniform branch needs no vectors.
"""

from __future__ import annotations

from metalloid.compiler.analysis.shapes import Shape, is_aligned_to_lanes
from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.types import Integer
from metalloid.compiler.vectorize.builder import Builder

#: Lanes that take part in the last steps of a tree of operations.
HALVES = (1, 2, 4, 8, 16)
_LESS, _MORE = ("ult", "ule", "slt", "sle"), ("ugt", "uge", "sgt", "sge")


def any_and_all(builder: Builder, condition: Value, holds: bool) -> tuple[str, str] | None:
    """Write whether `condition` is `holds` in any lane, and in all; None if it takes vectors.

    All lanes are active, and the comparison stands in the block being written.
    """
    inst = builder.instruction_here(condition)
    if inst is None or inst.op != "icmp":
        return None
    (index, limit), how = inst.operands, inst.predicate
    shape, type = builder.shape(index), index.type
    if not isinstance(type, Integer) or not builder.is_uniform(limit):
        return None
    if not _goes_up(shape, how[0] == "s"):
        return None
    assert shape.offsets is not None
    max_offset, against = max(shape.offsets), builder.scalar(limit)
    lowest = builder.scalar(index)
    highest = builder.new(f"add {type} {lowest}, {max_offset}")
    if how in _LESS or how in _MORE:
        both = [builder.new(f"icmp {how} {type} {lane}, {against}") for lane in (lowest, highest)]
        some, every = both if how in _LESS else both[::-1]
    else:
        if sorted(shape.offsets) != list(range(builder.width)):
            return None
        far = builder.new(f"sub {type} {against}, {lowest}")
        some, every = builder.new(f"icmp ule {type} {far}, {max_offset}"), "false"
        holds ^= how == "ne"
    if holds:
        return some, every
    return builder.new(f"xor i1 {every}, true"), builder.new(f"xor i1 {some}, true")


def all_lanes_pass(builder: Builder, condition: Value, holds: bool) -> str:
    """Write whether `condition` is `holds` in all lanes; "false" where that is hard to tell."""
    if builder.mask is not None:
        return "false"
    known = any_and_all(builder, condition, holds)
    return _all_pass_in_order(builder, condition, holds) if known is None else known[1]


def all_pass_each(builder: Builder, condition: Value) -> tuple[str, bool] | None:
    """Write whether all lanes pass each comparison of `condition`, and whether it holds then.

    ``0 < i && i < n`` holds where both do, ``i == 0 || i >= n`` fails where both fail. None if it
    joins nothing, or there is a comparison that takes vectors.
    """
    if builder.mask is not None:
        return None
    holds = _joined(builder, condition, True) is not None
    operands = _joined(builder, condition, holds)
    if operands is None:
        return None
    passes = "true"
    while operands:
        operand = operands.pop()
        deeper = _joined(builder, operand, holds)
        if deeper is not None:
            operands += deeper
            continue
        if builder.is_uniform(operand):
            one = builder.scalar(operand)
            if not holds:
                one = builder.new(f"xor i1 {one}, true")
        else:
            one = all_lanes_pass(builder, operand, holds)
        if one == "false":
            return None
        passes = builder.new(f"select i1 {passes}, i1 {one}, i1 false")
    return passes, holds


def first_lanes(builder: Builder, condition: Value, holds: bool) -> int:
    """The number of leading lanes that pass if any does; 0 if unknown or no power of two.

    Of an aligned index that is below 8 for some lane it is for the first eight.
    """
    inst = builder.instruction_here(condition)
    if builder.mask is not None or inst is None or inst.op != "icmp":
        return 0
    index, limit = inst.operands
    shape, number = builder.shape(index), limit.integer
    if number is None or not is_aligned_to_lanes(shape):
        return 0
    if shape.offsets != tuple(range(builder.width)):
        return 0
    below = {("ult", True): number, ("ugt", False): number + 1, ("eq", True): 1 - 2 * number}
    lanes = below.get((inst.predicate, holds), 0)
    return lanes if lanes in HALVES and lanes < builder.width else 0


def _joined(builder: Builder, condition: Value, by_and: bool) -> list[Value] | None:
    """The operands joined by ``and``, or by ``or``; None without such an operation."""
    inst = builder.instruction_here(condition)
    if inst is None or inst.op not in ("and", "or", "select"):
        return None
    if inst.op != "select":
        return list(inst.operands) if (inst.op == "and") == by_and else None
    first, yes, no = inst.operands
    if by_and:
        return [first, yes] if no.name == "false" else None
    return [first, no] if yes.name == "true" else None


def _all_pass_in_order(builder: Builder, condition: Value, holds: bool) -> str:
    """The same for an index that may wrap from one lane to another; then it is said to be false."""
    inst = builder.instruction_here(condition)
    if inst is None or inst.op != "icmp" or inst.predicate not in _LESS + _MORE:
        return "false"
    (index, limit), how, type = inst.operands, inst.predicate, inst.operands[0].type
    shape = builder.shape(index)
    if not isinstance(type, Integer) or not builder.is_uniform(limit):
        return "false"
    if shape.offsets is None or not shape.exact:
        return "false"
    first = builder.scalar(index)
    lowest = builder.new(f"add {type} {first}, {min(shape.offsets)}")
    highest = builder.new(f"add {type} {first}, {max(shape.offsets)}")
    in_order = builder.new(f"icmp {how[0]}le {type} {lowest}, {highest}")
    last = highest if (how in _LESS) == holds else lowest
    passes = builder.new(f"icmp {how} {type} {last}, {builder.scalar(limit)}")
    if not holds:
        passes = builder.new(f"xor i1 {passes}, true")
    return builder.new(f"and i1 {in_order}, {passes}")


def _goes_up(shape: Shape, signed: bool) -> bool:
    """Whether no lane is below lane 0 nor wraps."""
    if is_aligned_to_lanes(shape):
        return True
    offsets = shape.offsets
    return offsets is not None and shape.exact and min(offsets) >= 0 and not (shape.wraps or signed)
