"""``mx.distributed``, of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metalloid.compat.mlx.core.array import array, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype
from metalloid.compat.mlx.core.ops.wrapping import with_stream

_BACKENDS = ("any", "mpi", "ring", "nccl", "jaccl")


class Group:
    """A group of processes; this one has one."""

    def rank(self) -> int:
        """Number of this process."""
        return 0

    def size(self) -> int:
        """Number of processes."""
        return 1

    def split(self, color: int, key: int = -1) -> Group:
        """A group of those processes that give the same color.

        Raises
        ------
        RuntimeError
            A group of one process cannot be split.
        """
        raise RuntimeError("[distributed] Cannot split the distributed group: it has one process.")


def is_available(backend: str = "any") -> bool:
    """Whether several processes can communicate."""
    return False


def init(strict: bool = False, backend: str = "any", *,
         all_gather_factory: Callable[..., Any] | None = None) -> Group:  # fmt: skip
    """The group of all processes, which has one.

    Raises
    ------
    ValueError
        If there is no such back end.
    RuntimeError
        If there must be several processes (`strict`).
    """
    if backend not in _BACKENDS:
        raise ValueError(f"[distributed] there is no back end {backend!r}: use {_BACKENDS}.")
    if strict:
        raise RuntimeError("[distributed] Couldn't initialize a group of several processes.")
    return Group()


def _same(name: str, doc: str) -> Callable[..., array]:
    def reduced(x: Any, *, group: Group | None = None) -> array:
        return wrap(operand(x))

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = doc
    return with_stream(reduced)


all_sum = _same("all_sum", "Sum over all processes.")
all_max = _same("all_max", "Maximum over all processes.")
all_min = _same("all_min", "Minimum over all processes.")
all_gather = _same("all_gather", "Arrays of all processes, joined.")
sum_scatter = _same("sum_scatter", "A slice of the sum for each process.")


def _alone(where: str) -> ValueError:
    return ValueError(f"[{where}] Cannot communicate: the group has one process.")


@with_stream
def send(x: Any, dst: int, *, group: Group | None = None) -> array:
    """Send an array to another process."""
    raise _alone("send")


@with_stream
def recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Group | None = None) -> array:
    """Receive an array from another process."""
    raise _alone("recv")


@with_stream
def recv_like(x: Any, src: int, *, group: Group | None = None) -> array:
    """Receive an array like another one."""
    raise _alone("recv_like")
