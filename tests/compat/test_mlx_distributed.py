"""`mx.distributed` of several processes: its operations on a communicator of two equal processes.

A slow test runs a program by MPI.
"""

import importlib.util
import shutil
import subprocess
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from metalloid.compat.mlx import core as mx
from metalloid.compat.mlx.core import distributed


class Twins:
    """The communicator of a process whose only peer sends whatever it sends itself."""

    rank, size = 1, 2

    def __init__(self):
        self.messages = []

    def Split(self, color, key):
        return Twins()

    def Allgather(self, own, gathered):
        gathered[:] = own

    def Allreduce(self, own, reduced, operation):
        reduced[...] = operation(own, own)

    def Isend(self, memory, to):
        self.messages.append(memory)
        return types.SimpleNamespace(Test=lambda: True, Wait=lambda: None)

    def Recv(self, memory, source):
        memory[:] = self.messages.pop(0)


@pytest.fixture
def group(monkeypatch):
    module = types.ModuleType("mpi4py.MPI")
    module.SUM, module.MAX, module.MIN = np.add, np.maximum, np.minimum
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", module)
    return distributed.Group(Twins())


def values(x):
    return np.asarray(x._a)


@pytest.mark.parametrize("dtype", ["int8", "float32", ml_dtypes.bfloat16, "complex64"])
def test_operations_have_the_type_of_their_operand(group, dtype):
    numbers = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    x = mx.array(numbers)
    for name, factor in (("all_sum", 2), ("all_max", 1), ("all_min", 1)):
        reduced = values(getattr(mx.distributed, name)(x, group=group))
        assert reduced.dtype == numbers.dtype
        assert (reduced == numbers * np.array(factor, dtype)).all()
    gathered = values(mx.distributed.all_gather(x, group=group))
    assert (gathered == np.concatenate([numbers, numbers])).all()
    summed = values(mx.distributed.sum_scatter(x, group=group))
    assert (summed == numbers[1:] + numbers[1:]).all()
    assert (values(mx.distributed.send(x, 0, group=group)) == numbers).all()
    assert (values(mx.distributed.recv_like(x, 0, group=group)) == numbers).all()


def test_shapes_and_errors(group):
    x = mx.array([1, 2, 3, 4, 5])
    assert mx.distributed.all_gather(mx.array(3), group=group).tolist() == [3, 3]
    with pytest.raises(ValueError, match="There is no process 2 in a group of 2"):
        mx.distributed.send(x, 2, group=group)
    with pytest.raises(ValueError, match=r"Invalid shape=\(5,\) for a group of size 2"):
        mx.distributed.sum_scatter(x, group=group)
    with pytest.raises(RuntimeError, match="not supported in a transformed function"):
        mx.compile(lambda x: mx.distributed.recv((5,), mx.float32, 0, group=group))(x)
    assert (group.split(0).size(), group.split(0).rank()) == (2, 1)


def test_transforms_go_through_them(group):
    def total(x):
        return mx.distributed.all_sum(x, group=group)

    def gathered(x):
        return mx.distributed.all_gather(x, group=group)

    def summed(x):
        return mx.distributed.sum_scatter(x, group=group)

    x, y, four = mx.array([1.0, 2.0]), mx.array([3.0, 4.0]), mx.array([5.0, 6.0, 7.0, 8.0])
    compiled = mx.compile(total)
    assert [compiled(x).tolist(), compiled(y).tolist()] == [[2, 4], [6, 8]]
    assert mx.vmap(total)(mx.array([[1.0], [2.0]])).tolist() == [[2], [4]]
    for function, cotangent, expected in (
        (total, y, [3, 4]),  # that of this process, as in MLX
        (gathered, four, [7, 8]),
        (summed, mx.array([3.0]), [3, 3]),
    ):
        _, (gradient,) = mx.vjp(function, [x], [cotangent])
        assert gradient.tolist() == expected
        _, (tangent,) = mx.jvp(function, [x], [y])
        assert tangent.tolist() == function(y).tolist()


def test_processes_that_cannot_communicate_are_not_silently_alone(monkeypatch):
    monkeypatch.setattr(distributed, "_groups", {})
    monkeypatch.setattr(distributed, "is_available", lambda: False)
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(RuntimeError, match="with mpi4py installed"):
        mx.distributed.init()
    monkeypatch.delenv("PMI_SIZE")
    monkeypatch.setenv("MLX_HOSTFILE", "hosts.json")
    with pytest.raises(RuntimeError, match="Start them by 'mpirun"):
        mx.distributed.init(backend="ring")


PROGRAM = """
import mlx.core as mx
group = mx.distributed.init(strict=True, backend="mpi")
rank = group.rank()
x = mx.ones(3) * rank
assert mx.distributed.all_sum(x).tolist() == [3] * 3
assert mx.distributed.all_gather(x[:1]).tolist() == [0, 1, 2]
mx.distributed.send(x, (rank + 1) % 3)
assert mx.distributed.recv_like(x, (rank + 2) % 3).tolist() == [(rank + 2) % 3] * 3
assert group.split(rank // 2).size() == (1 if rank == 2 else 2)
print("done\\n", end="")
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not (importlib.util.find_spec("mpi4py") and shutil.which("mpiexec")),
    reason="mpi4py or mpiexec is not installed",
)
def test_processes_of_mpi(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = ["mpiexec", "-n", "3", sys.executable, "-m", "metalloid.compat.mlx", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("done") == 3
