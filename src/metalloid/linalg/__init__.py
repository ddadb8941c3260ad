"""Linear algebra on the last two axes of arrays, the axes before them being a stack of matrices.

Products, norms and what else is made of arithmetic are expressions, which fuse with others.
Decompositions and equations are LAPACK's, through NumPy, on the memory of the arrays. They work in
double precision whatever the type, so that a result in float32 has the error of the problem and one
rounding. Integers are taken as float32 there. Like everything they are computed when somebody looks
at them, and what they raise about values, NumPy's ``LinAlgError``, is raised then. On NVIDIA GPUs
cuSOLVER decomposes large matrices, and many of them, where it is installed: in their own precision.
"""

from metalloid.arrays.functions.tensor_contractions import (
    matmul,
    matrix_transpose,
    tensordot,
    vecdot,
)
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
