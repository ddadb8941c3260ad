"""What the maker of a device has written for it: libraries that compute what kernels of ours would.

Their work is in turn with launches. Which of them there are is only looked up when somebody asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from metalloid.runtime.launch.event import Event
from metalloid.runtime.launch.launches import LaunchBuffer

if TYPE_CHECKING:
    import numpy as np


class Libraries:
    """Those of one device; None where it has none of a kind."""

    products: Products | None = None
    solver: Solver | None = None
    fourier: Fourier | None = None


class Matrices(NamedTuple):
    """Matrices behind each other in a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Where the first begins, in bytes.
    rows, columns : int
        Of each.
    row_bytes, matrix_bytes : int
        From a row, or a matrix, to the next.
    is_turned : bool
        Whether columns lie in memory where rows do elsewhere.
    dtype : str
    """

    buffer: LaunchBuffer
    start: int
    rows: int
    columns: int
    row_bytes: int
    matrix_bytes: int
    is_turned: bool
    dtype: str


class Products(ABC):
    """A library that multiplies matrices.

    Attributes
    ----------
    name : str
        What `metalloid.config.products` calls it.
    is_first : bool
        Whether it multiplies where nothing else is asked for, being faster than kernels.
    may_repeat : bool
        Whether a matrix may be all of the matrices, lying 0 bytes from the next.
    """

    name: str
    is_first = False
    may_repeat = False

    @property
    @abstractmethod
    def dtypes(self) -> frozenset[str]:
        """Types of matrices that it multiplies.

        Raises
        ------
        DeviceUnavailable
            If it is not installed.
        """

    @abstractmethod
    def multiply(
        self, left: Matrices, right: Matrices, result: Matrices, count: int, allow_tf32: bool
    ) -> Event:
        """Have so many matrices multiplied, each with one of the others.

        Parameters
        ----------
        allow_tf32 : bool
            Whether float32 may be rounded to what is faster.
        """


class Stack(NamedTuple):
    """Matrices that fill a buffer, each column by column, as LAPACK has them.

    Attributes
    ----------
    buffer : Buffer
    matrices : int
        How many.
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

    The methods return LAPACK's ``info`` of every matrix: 0, or what is wrong with it.
    """

    @abstractmethod
    def suits(self, name: str, count: int, rows: int, columns: int) -> bool:
        """Whether it is faster than the host at the method of that name for so many matrices."""

    @abstractmethod
    def lu(self, a: Stack) -> tuple[np.ndarray, np.ndarray]:
        """Both triangles in place of `a`; with the rows, from 1, that each was exchanged with."""

    @abstractmethod
    def solve(self, a: Stack, b: Stack) -> np.ndarray:
        """The solutions in place of `b`, and anything in place of `a`."""

    @abstractmethod
    def cholesky(self, a: Stack, upper: bool) -> np.ndarray:
        """One triangle in place of `a`'s; the other is as it was."""

    @abstractmethod
    def qr(self, a: Stack, q: Stack) -> np.ndarray:
        """The upper triangle in place of `a`'s, and as many orthonormal columns as `q` has."""

    @abstractmethod
    def eigh(self, a: Stack, values: LaunchBuffer, vectors: bool) -> np.ndarray:
        """Eigenvalues, from the lower triangles, and eigenvectors in place of `a`."""

    @abstractmethod
    def svd(
        self, a: Stack, values: LaunchBuffer, left: Stack | None, right: Stack | None
    ) -> np.ndarray:
        """Singular values, the largest first.

        Parameters
        ----------
        left, right : Stack, optional
            Where singular vectors go, as columns: all there are, or as many as there are values.
        """


class Signal(NamedTuple):
    """Numbers that lie behind each other in a buffer.

    Attributes
    ----------
    buffer : Buffer
    start : int
        Where they begin, in bytes.
    dtype : str
    """

    buffer: LaunchBuffer
    start: int
    dtype: str


class Fourier(ABC):
    """A library of discrete Fourier transforms, which divides by nothing."""

    @abstractmethod
    def transform(self, source: Signal, result: Signal, lengths: tuple[int, ...], count: int,
                  is_inverse: bool) -> Event:  # fmt: skip
        """Transform along so many last axes as there are lengths, 3 at most.

        One side may be real, which makes the last axis of the other ``lengths[-1] // 2 + 1`` long.
        What is transformed to real numbers is overwritten, and has one axis.
        """
