"""What the maker of a device has written for it: libraries that compute what kernels of ours would.

Their work is in turn with launches. Which of them there are is only looked up when somebody asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from metalloid.runtime.buffer import Buffer
    from metalloid.runtime.event import Event


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

    buffer: Buffer
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
    """

    name: str

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
    def multiply(self, left: Matrices, right: Matrices, result: Matrices, count: int) -> Event:
        """Have so many matrices multiplied, each with one of the others."""


class Libraries:
    """Those of one device; None where it has none of a kind."""

    products: Products | None = None
