"""The type of a simdgroup_matrix as one value of a simdgroup, and where its elements lie."""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.ir.types import FLOAT, Type

ROWS = 8


@dataclass(frozen=True)
class Matrix(Type):
    """Eight rows of floats."""

    columns: int

    def __str__(self) -> str:
        return f"[{ROWS} x {self.row}]"

    @property
    def row(self) -> str:
        """The type of a row."""
        return f"<{self.columns} x {FLOAT}>"


MATRIX, PAIR = Matrix(ROWS), Matrix(2 * ROWS)


def matrix_type(type: Type) -> Type:
    """`MATRIX` or `PAIR` if that is how a type is written, else the type."""
    return next((each for each in (MATRIX, PAIR) if str(each) == str(type)), type)


def row_of(lane: int) -> int:
    """The row of a lane's elements."""
    return (lane // 4 & 4) + lane // 2 % 4


def column_of(lane: int) -> int:
    """The column of its first element."""
    return (lane // 4 & 2) * 2 + lane % 2 * 2
