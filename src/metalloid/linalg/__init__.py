"""Linear algebra over the last two axes of arrays; the axes before them are a stack of matrices.

Products and norms are expressions, which fuse with others. Decompositions and solvers call LAPACK
through NumPy, on the memory of the arrays, in double precision. A float32 result is rounded once,
so its error is that of the problem. Integers are converted to float32. Like all functions they are
lazy: errors about values, NumPy's ``LinAlgError``, are raised at evaluation. On NVIDIA GPUs
cuSOLVER, if installed, decomposes large matrices and large stacks, in their own precision.
"""

from typing import TYPE_CHECKING, Any

from metalloid.arrays.functions.tensor_contractions import (
    matmul,
    matrix_transpose,
    tensordot,
    vecdot,
)
from metalloid.errors import unknown_attribute
from metalloid.linalg import decomposition_rules as _rules  # noqa: F401 - registers them
from metalloid.linalg.decompositions import (
    QR,
    SVD,
    Eig,
    Eigh,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from metalloid.linalg.equations import (
    LeastSquares,
    SlogDet,
    det,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
)
from metalloid.linalg.matrices import LinAlgError
from metalloid.linalg.norms import matrix_norm, norm, vector_norm
from metalloid.linalg.products import cross, diagonal, matrix_power, outer, trace
from metalloid.linalg.triangles import LU, lu

__all__ = [
    "LU",
    "QR",
    "SVD",
    "Eig",
    "Eigh",
    "LeastSquares",
    "LinAlgError",
    "SlogDet",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
