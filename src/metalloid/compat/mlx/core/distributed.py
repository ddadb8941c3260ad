"""``mx.distributed``: one process, or several that ``mpirun`` starts, over mpi4py.

Arrays are exchanged when a function is called, and within a compiled function when that runs.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.util
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.ir.node import TRACED
from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype
from metalloid.compat.mlx.core.ops.wrapping import with_stream
from metalloid.transforms.state import is_tracing

_BACKENDS = ("any", "mpi", "ring", "nccl", "jaccl")
#: Variables in which launchers of MPI state the number of processes.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
_UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Group:
    """A group of processes.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        Without one, the group is this process.
    """

    def __init__(self, communicator: Any = None) -> None:
        self._communicator = communicator

    def rank(self) -> int:
        """Number of this process."""
        return 0 if self._communicator is None else int(self._communicator.rank)

    def size(self) -> int:
        """Number of processes."""
        return 1 if self._communicator is None else int(self._communicator.size)

    def split(self, color: int, key: int = -1) -> Group:
        """A group of those processes that give the same color, ordered by `key`.

        Raises
        ------
        RuntimeError
            A group of one process cannot be split.
        """
        if self._communicator is None:
            raise RuntimeError(
                "[distributed] Cannot split the distributed group: it has one process."
            )
        return Group(self._communicator.Split(color, self.rank() if key < 0 else key))


_groups: dict[str, Group] = {}


def is_available(backend: str = "any") -> bool:
    """Whether several processes can communicate: with mpi4py, by the back end ``mpi``."""
    return backend in ("any", "mpi") and importlib.util.find_spec("mpi4py") is not None


def init(strict: bool = False, backend: str = "any", *,
         all_gather_factory: Callable[..., Any] | None = None) -> Group:  # fmt: skip
    """The group of all processes: those of ``mpirun``, or this one.

    Raises
    ------
    ValueError
        If there is no such back end.
    RuntimeError
        If the processes cannot communicate, and there are or must be (`strict`) several.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"[distributed] there is no back end {backend!r}: use {_BACKENDS}.")
    if backend in _groups:
        return _groups[backend]
    launched = next((int(os.environ[name]) for name in _SIZES if name in os.environ), 1)
    uses_mpi = backend in ("any", "mpi")
    if uses_mpi and is_available() and (launched > 1 or strict):
        group = Group(importlib.import_module("mpi4py.MPI").COMM_WORLD)
        _groups["any"] = group
    elif strict or (uses_mpi and launched > 1) or "MLX_HOSTFILE" in os.environ:
        raise RuntimeError(
            f"[distributed] Couldn't initialize a group of several processes by {backend!r}. "
            "Start them by 'mpirun -n 2 python -m metalloid.compat.mlx program.py', with mpi4py "
            "installed; other back ends of MLX are not there."
        )
    else:
        group = Group()
    _groups[backend] = group
    return group


def _group(group: Group | None) -> Group:
    return init() if group is None else group


# -- on the host


def _bytes(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _all_gather(x: np.ndarray, group: Group) -> np.ndarray:
    own = _bytes(x)
    gathered = np.empty((group.size(), own.size), np.uint8)
    group._communicator.Allgather(own, gathered)
    return gathered.view(x.dtype).reshape(group.size(), *x.shape)


def _all_reduce(x: np.ndarray, group: Group, name: str) -> np.ndarray:
    if x.dtype.kind in "iu" or x.dtype.name in ("float32", "float64"):
        own, reduced = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
        operation = getattr(importlib.import_module("mpi4py.MPI"), name.upper())
        group._communicator.Allreduce(own, reduced, operation)
        return reduced
    # MPI does not add halves, and does not order complex numbers.
    gathered = _all_gather(x, group)
    halves = x.dtype.itemsize == 2
    wide = gathered.astype(np.float32) if halves else gathered
    return _UFUNCS[name].reduce(wide, 0).astype(x.dtype)  # type: ignore[no-any-return]


def _sum_scatter(x: np.ndarray, group: Group) -> np.ndarray:
    rows = x.shape[0] // group.size()
    return _all_reduce(x, group, "sum")[group.rank() * rows :][:rows]


#: Messages that may not have been received, with the memory that they are sent from.
_sent: list[tuple[Any, np.ndarray]] = []


def _wait() -> None:
    for request, _ in _sent:
        request.Wait()


def _send(x: np.ndarray, group: Group, to: int, number: int) -> np.ndarray:
    _sent[:] = [(request, memory) for request, memory in _sent if not request.Test()]
    atexit.unregister(_wait)
    atexit.register(_wait)
    memory = _bytes(x).copy()
    _sent.append((group._communicator.Isend(memory, to), memory))
    return x


# -- operations


def _call(function: Callable[..., np.ndarray], x: mtl.Array, parameters: tuple[Any, ...],
          shape: Sequence[int]) -> mtl.Array:  # fmt: skip
    """The result of a host function, at once unless `x` is traced."""
    result = mtl.Array(host_call(function, [x._node], parameters, (x.dtype, tuple(shape)))[0])
    if not x._node.flags & TRACED:
        mtl.eval(result)
    return result


def _stack_shape(x: mtl.Array, group: Group) -> tuple[int, ...]:
    first, *others = x.shape or (1,)
    return (first * group.size(), *others)


@functools.cache
def _reduction(name: str, group: Group) -> Callable[[mtl.Array], mtl.Array]:
    """A reduction over the processes, with MLX's rules for transforms."""

    def reduced(x: mtl.Array) -> mtl.Array:
        return _call(_all_reduce, x, (group, name), x.shape)

    function = mtl.custom_function(reduced)
    function.vjp(lambda primal, cotangent, output: cotangent)
    function.jvp(lambda primal, tangent: function(tangent))
    function.vmap(lambda x, axis: (function(x), axis))
    return function


@functools.cache
def _gathering(group: Group) -> Callable[[mtl.Array], mtl.Array]:
    def gathered(x: mtl.Array) -> mtl.Array:
        return _call(_all_gather, x, (group,), _stack_shape(x, group))

    def rule(x: mtl.Array, cotangent: mtl.Array, output: mtl.Array) -> mtl.Array:
        rows = cotangent.shape[0] // group.size()
        return cotangent[group.rank() * rows :][:rows].reshape(x.shape)

    function = mtl.custom_function(gathered)
    function.vjp(rule)
    function.jvp(lambda primal, tangent: function(tangent))
    return function


@functools.cache
def _scattering(group: Group) -> Callable[[mtl.Array], mtl.Array]:
    def summed(x: mtl.Array) -> mtl.Array:
        return _call(_sum_scatter, x, (group,), (x.shape[0] // group.size(), *x.shape[1:]))

    function = mtl.custom_function(summed)
    function.vjp(lambda x, cotangent, output: _gathering(group)(cotangent))
    function.jvp(lambda x, tangent: function(tangent))
    return function


def _all_reducing(name: str, doc: str) -> Callable[..., array]:
    def reduced(x: Any, *, group: Group | None = None) -> array:
        own, group = operand(x), _group(group)
        return wrap(own if group.size() == 1 else _reduction(name, group)(own))

    reduced.__name__ = reduced.__qualname__ = f"all_{name}"
    reduced.__doc__ = doc
    return with_stream(reduced)


all_sum = _all_reducing("sum", "Sum over all processes.")
all_max = _all_reducing("max", "Maximum over all processes.")
all_min = _all_reducing("min", "Minimum over all processes.")


@with_stream
def all_gather(x: Any, *, group: Group | None = None) -> array:
    """Arrays of all processes, joined."""
    own, group = operand(x), _group(group)
    return wrap(own if group.size() == 1 else _gathering(group)(own))


@with_stream
def sum_scatter(x: Any, *, group: Group | None = None) -> array:
    """A slice of the sum for each process."""
    own, group = operand(x), _group(group)
    count = group.size()
    if count == 1:
        return wrap(own)
    if not own.ndim or own.shape[0] % count:
        raise ValueError(
            f"[sum_scatter] Invalid shape={own.shape} for a group of size {count}. The first axis "
            "must be divisible by the size of the group."
        )
    return wrap(_scattering(group)(own))


def _check_other(where: str, number: int, group: Group) -> None:
    if group.size() == 1:
        raise ValueError(f"[{where}] Cannot communicate: the group has one process.")
    if not 0 <= number < group.size():
        raise ValueError(f"[{where}] There is no process {number} in a group of {group.size()}.")


_numbers = itertools.count()


@with_stream
def send(x: Any, dst: int, *, group: Group | None = None) -> array:
    """Send an array to another process."""
    own, group = operand(x), _group(group)
    _check_other("send", dst, group)
    return wrap(_call(_send, own, (group, dst, next(_numbers)), own.shape))


@with_stream
def recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Group | None = None) -> array:
    """Receive an array from another process.

    Raises
    ------
    RuntimeError
        Inside of a compiled function, which has its arrays as arguments.
    """
    group = _group(group)
    _check_other("recv", src, group)
    if is_tracing():
        raise RuntimeError("[recv] not supported in a transformed function: pass it the array.")
    received = np.empty(tuple(shape), dtype.numpy)
    group._communicator.Recv(received.reshape(-1).view(np.uint8), src)
    return wrap(mtl.asarray(received))


@with_stream
def recv_like(x: Any, src: int, *, group: Group | None = None) -> array:
    """Receive an array like another one."""
    own = wrap(operand(x))
    return recv(own.shape, own.dtype, src, group=group)
