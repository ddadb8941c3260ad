"""Stacks of matrices of a few rows, by `small_matrices.metal`: a thread for each matrix.

LAPACK takes longer to be called for such a matrix than to compute.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import launch_call, to_host
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.functions.elementwise import isnan
from metalloid.arrays.ir.dtypes import DType, float32, float64, msl_name
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node

#: Maximum rows of a matrix, whose elements are in registers, and minimum matrices.
_MAX_ROWS, _MIN_MATRICES = 6, 128


def is_small(a: Node, backend: str) -> bool:
    """Whether a stack is computed by these kernels."""
    rows = a.shape[-1]
    return (
        backend not in ("host", "cusolver") and a.dtype in (float32, float64)
        and 0 < rows <= _MAX_ROWS and _MIN_MATRICES <= math.prod(a.shape[:-2]) < 2**31
    )  # fmt: skip


def is_small_system(a: Node, b: Node, backend: str) -> bool:
    """Whether equations with few right-hand sides are solved by these kernels."""
    is_of_stack = a.shape[:-2] == b.shape[:-2] and a.dtype == b.dtype
    return is_of_stack and is_small(a, backend) and 0 < b.shape[-1] <= _MAX_ROWS


def determinants(a: Node) -> Node:
    """The determinant of every matrix."""
    call = _call("determinants", a.dtype, a.shape[-1], 1, math.prod(a.shape[:-2]))
    return library_call(call, [a], a.dtype, a.shape[:-2])


def inverses(a: Node, on_host: Callable[..., np.ndarray]) -> Node:
    """The inverse of every matrix.

    Parameters
    ----------
    on_host : callable
        Computes them if one is not a number, which singular matrices have; it raises the error.
    """
    return launch_call(_checked, [a], ("inverses", on_host), (a.dtype, a.shape))[0]


def solutions(a: Node, b: Node, on_host: Callable[..., np.ndarray]) -> Node:
    """The solutions of equations; see `inverses`."""
    return launch_call(_checked, [a, b], ("solutions", on_host), (b.dtype, b.shape))[0]


def _checked(*args: object) -> list[Memory]:
    *nodes, name, on_host = args
    operands = [node for node in nodes if isinstance(node, Node)]
    a, result = operands[0], operands[-1]
    call = _call(str(name), a.dtype, a.shape[-1], result.shape[-1], math.prod(a.shape[:-2]))
    node = library_call(call, operands, result.dtype, result.shape)
    has_nan = isnan(Array(node)).any()._node
    node, has_nan = evaluate([node, has_nan])
    if to_host(has_nan) and callable(on_host):
        values = on_host(*map(to_host, operands))
        node = from_numpy(np.ascontiguousarray(values, result.dtype), a.device)
    assert node.memory is not None
    return [node.memory]


@functools.lru_cache(maxsize=256)
def _call(name: str, dtype: DType, rows: int, columns: int, count: int) -> LibraryCall:
    type_ = msl_name(dtype)
    matrix = f"(device const {type_} *)x0 + ulong(at.x) * {rows * rows}"
    to = f"(device {type_} *)out + ulong(at.x) * {rows * columns}"
    reads: Ints = (0,)
    if name == "determinants":
        body = f"((device {type_} *)out)[at.x] = numpy::small_determinant<{rows}>({matrix});"
    elif name == "inverses":
        body = f"numpy::invert_small<{rows}>({matrix},\n    {to});"
    else:
        right = f"(device const {type_} *)x1 + ulong(at.x) * {rows * columns}"
        body = f"numpy::solve_small<{rows}, {columns}>({matrix},\n    {right},\n    {to});"
        reads = (0, 1)
    launch = LibraryLaunch(
        name=f"small_{name}",
        body=body,
        files=("small_matrices",),
        reads=reads,
        writes=(len(reads),),
        numbers=(),
        threads=(count, 1, 1),
    )
    return LibraryCall((launch,))
