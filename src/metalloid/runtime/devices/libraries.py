"""Libraries of devices: matrix products, linear algebra and Fourier transforms.

Their work is ordered with launches. Libraries are looked up on first use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import Launch, LaunchBuffer

if TYPE_CHECKING:
    import numpy as np


class Libraries:
    """The libraries of one device; None for a kind that it lacks."""

    products: Products | None = None
    blas: Blas | None = None
    sorts: Sorts | None = None
    solver: Solver | None = None
    fourier: Fourier | None = None


class Matrices(NamedTuple):
    """A batch of matrices in a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Offset of the first matrix, in bytes.
    rows, columns : int
        Of each.
    row_bytes, matrix_bytes : int
        Strides of rows and of matrices.
    is_transposed : bool
        Whether the matrices are transposed: stored by columns.
    dtype : str
    """

    buffer: LaunchBuffer
    start: int
    rows: int
    columns: int
    row_bytes: int
    matrix_bytes: int
    is_transposed: bool
    dtype: str


class Products(ABC):
    """A library that multiplies matrices.

    Attributes
    ----------
    name : str
        Its name in `metalloid.config.products`.
    is_first : bool
        Whether it is the default, as it is faster than kernels.
    may_repeat : bool
        Whether it broadcasts one matrix over a batch, with `matrix_bytes` of 0.
    """

    name: str
    is_first = False
    may_repeat = False

    @property
    @abstractmethod
    def dtypes(self) -> frozenset[str]:
        """Element types that it multiplies.

        Raises
        ------
        DeviceUnavailable
            If it is not installed.
        """

    @abstractmethod
    def multiply(
        self, left: Matrices, right: Matrices, result: Matrices, count: int, allow_tf32: bool
    ) -> Event:
        """Multiply `count` pairs of matrices.

        Parameters
        ----------
        allow_tf32 : bool
            Whether float32 may be rounded to TF32.
        """


class Operand(NamedTuple):
    """A factor of a product, or a stack of them.

    Attributes
    ----------
    offset : int
        Of the first element from the address of the launch, in bytes.
    down, across, next : int
        Strides of rows, of columns and of matrices, in elements.
    """

    offset: int
    down: int
    across: int
    next: int


class Blas(ABC):
    """Matrix products by a library of the host, as launches that take addresses."""

    @property
    @abstractmethod
    def dtypes(self) -> frozenset[str]:
        """Element types that it multiplies."""

    @property
    @abstractmethod
    def has_avx512(self) -> bool:
        """Whether its kernels may use AVX-512: False if it is known that they do not."""

    @abstractmethod
    def product(
        self, dtype: str, shape: Sequence[int], left: Operand, right: Operand
    ) -> Launch | None:
        """A launch of products, which are contiguous; None if the library lacks them.

        Its first three words are the addresses of the factors and of the products.

        Parameters
        ----------
        shape : sequence of int
            Number of products, their rows and columns, and the depth.
        """


class Sorts(ABC):
    """Sorts by a library of the host, as launches that take addresses."""

    @abstractmethod
    def rows(self, dtype: str, rows: int, length: int, descending: bool) -> Launch | None:
        """A launch that sorts contiguous rows; None if the library does not sort such elements.

        Its first two words are the addresses of the rows and of the sorted rows. NaN is the largest
        number.
        """


class Stack(NamedTuple):
    """Contiguous matrices that fill a buffer, in column-major order as for LAPACK.

    Attributes
    ----------
    buffer : Buffer
    matrices : int
        Their number.
    rows, columns : int
        Of each.
    dtype : str
    """

    buffer: LaunchBuffer
    matrices: int
    rows: int
    columns: int
    dtype: str


class Solver(ABC):
    """LAPACK for a device. Matrices are overwritten.

    The methods return LAPACK's ``info`` of every matrix: 0, or the reason of a failure.
    """

    @abstractmethod
    def suits(self, name: str, count: int, rows: int, columns: int) -> bool:
        """Whether the method `name` is faster than on the host, for `count` matrices."""

    @abstractmethod
    def lu(self, a: Stack) -> tuple[np.ndarray, np.ndarray]:
        """Overwrite `a` with both triangles; returns the pivots too, from 1."""

    @abstractmethod
    def solve(self, a: Stack, b: Stack) -> np.ndarray:
        """Overwrite `b` with the solutions, and `a` with anything."""

    @abstractmethod
    def cholesky(self, a: Stack, upper: bool) -> np.ndarray:
        """Overwrite one triangle of `a`; the other is unchanged."""

    @abstractmethod
    def qr(self, a: Stack, q: Stack) -> np.ndarray:
        """Overwrite the upper triangle of `a`, and `q` with orthonormal columns."""

    @abstractmethod
    def eigh(self, a: Stack, values: LaunchBuffer, vectors: bool) -> np.ndarray:
        """Eigenvalues, from the lower triangles; overwrites `a` with eigenvectors."""

    @abstractmethod
    def svd(
        self, a: Stack, values: LaunchBuffer, left: Stack | None, right: Stack | None
    ) -> np.ndarray:
        """Singular values, the largest first.

        Parameters
        ----------
        left, right : Stack, optional
            Outputs for singular vectors, as columns: all of them, or one per value.
        """


class Signal(NamedTuple):
    """Contiguous numbers in a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Offset of the first, in bytes.
    dtype : str
    """

    buffer: LaunchBuffer
    start: int
    dtype: str


class Fourier(ABC):
    """A library of discrete Fourier transforms, without normalisation."""

    @abstractmethod
    def transform(self, source: Signal, result: Signal, lengths: tuple[int, ...], count: int,
                  is_inverse: bool) -> Event:  # fmt: skip
        """Transform along the last ``len(lengths)`` axes, 3 at most.

        Source or result may be real; the last axis of the other then has ``lengths[-1] // 2 + 1``
        elements. The source of a transform to real numbers is overwritten, and has one axis.
        """
