"""Operations of range programs."""

from __future__ import annotations

import enum


class Op(enum.IntEnum):
    """Operations of a range program, in the order of the `enum` in intervals.h."""

    FULL = 0
    CONSTANT = enum.auto()
    VARIABLE = enum.auto()
    ARGUMENT = enum.auto()
    ADD = enum.auto()
    SUB = enum.auto()
    MUL = enum.auto()
    UDIV = enum.auto()
    UREM = enum.auto()
    LSHR = enum.auto()
    SHL = enum.auto()
    AND = enum.auto()
    OR = enum.auto()
    XOR = enum.auto()
    SDIV = enum.auto()
    SREM = enum.auto()
    ASHR = enum.auto()
    ZEXT = enum.auto()
    SEXT = enum.auto()
    TRUNC = enum.auto()
    UMIN = enum.auto()
    UMAX = enum.auto()
    SMIN = enum.auto()
    SMAX = enum.auto()
    UNION = enum.auto()
    ULT = enum.auto()  # the first, where it is less than the second
    ULE = enum.auto()
    UGT = enum.auto()
    UGE = enum.auto()
    SLT = enum.auto()
    SLE = enum.auto()
    SGT = enum.auto()
    SGE = enum.auto()
    EQ = enum.auto()
    NE = enum.auto()
    UP_TO = enum.auto()  # from the first by the step c, while it is less than the second
    UP_TO_EQUAL = enum.auto()  # the same until it is equal
    DOWN_TO = enum.auto()
    DOWN_TO_EQUAL = enum.auto()
    SPAN = enum.auto()  # iterations: from 0 to the first's extent, divided by the step c
    UP_TO_BY = enum.auto()  # UP_TO, by a step that the node c / 2 is the range of
    NARROW = enum.auto()  # the first, a sum, is also in the second if narrow numbers hold it
