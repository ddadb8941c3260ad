"""Linear algebra on the last two axes of arrays, the axes before them being a stack of matrices."""

from metalloid.array.linear import matmul, matrix_transpose, tensordot, vecdot

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
