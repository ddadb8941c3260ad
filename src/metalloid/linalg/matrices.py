"""Validation of stacks of matrices, and the messages of `LinAlgError`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import DType, default_float, float32, kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, cast
from metalloid.arrays.ir.operands import to_node

LinAlgError = np.linalg.LinAlgError
#: Messages for matrices for which LAPACK's iteration does not converge.
NO_SINGULAR_VALUES = "has singular values that were not found, as with NaNs"
NO_EIGENVALUES = "has eigenvalues that were not found, as with infinities and NaNs"


def floats(where: str, x: Any) -> tuple[Node, DType]:
    """Convert to a type that NumPy's linear algebra supports; also return the type of the result.

    Integers and half floats are computed in float32; results of half floats are half floats.
    """
    node = to_node(x, where)
    dtype = node.dtype if kind_of(node.dtype) in "fc" else default_float()
    return cast(node, float32 if dtype.itemsize == 2 else dtype), dtype


def matrices(where: str, x: Any) -> tuple[Node, DType]:
    """Convert like `floats`, and require at least two axes.

    Raises
    ------
    LinAlgError
    """
    node, dtype = floats(where, x)
    if len(node.shape) < 2:
        raise LinAlgError(
            f"[{where}] expected matrices along the last two axes, got shape {node.shape}."
        )
    return node, dtype


def square_matrices(where: str, x: Any) -> tuple[Node, DType]:
    """Convert like `matrices`, and require square matrices.

    Raises
    ------
    LinAlgError
    """
    node, dtype = matrices(where, x)
    check_square(where, node)
    return node, dtype


def check_square(where: str, node: Node, advice: str = "") -> None:
    """Raise if matrices are not square.

    Raises
    ------
    LinAlgError
    """
    if node.shape[-1] != node.shape[-2]:
        raise LinAlgError(f"[{where}] expected square matrices, got shape {node.shape}.{advice}")


def explained(where: str, function: Callable[..., Any], fault: str) -> Callable[..., Any]:
    """Wrap a host function so that its `LinAlgError` names the matrix of the stack and the fault.

    Parameters
    ----------
    fault : str
        The fault of a matrix for which NumPy raises `LinAlgError`.
    """

    @functools.wraps(function)
    def call(a: np.ndarray, *more: Any) -> Any:
        try:
            return function(a, *more)
        except LinAlgError as error:
            matrix = _first_at_fault(function, a, more)
            raise LinAlgError(f"[{where}] {matrix} {fault}.") from error

    return call


def _first_at_fault(function: Callable[..., Any], a: np.ndarray, more: tuple[Any, ...]) -> str:
    for index in np.ndindex(a.shape[:-2]):
        try:
            function(a[index], *more)
        except LinAlgError:
            return _matrix_text(index, a.shape)
        except ValueError:
            continue  # this matrix is valid; the other operands belong to the whole stack
    return _matrix_text((), a.shape)


def _matrix_text(index: Ints, shape: Ints) -> str:
    return f"matrix {index} of shape {shape}" if index else f"the matrix of shape {shape[-2:]}"


def refuse(where: str, infos: np.ndarray, shape: Ints, fault: str) -> None:
    """Raise `LinAlgError` for the first matrix of a stack for which a library failed.

    Parameters
    ----------
    infos : ndarray
        LAPACK's ``info`` of every matrix; 0 for success.

    Raises
    ------
    LinAlgError
    """
    if infos.any():
        index = np.unravel_index(int(np.flatnonzero(infos)[0]), shape[:-2] or (1,))
        matrix = _matrix_text(tuple(map(int, index)) if shape[:-2] else (), shape)
        raise LinAlgError(f"[{where}] {matrix} {fault}.")
