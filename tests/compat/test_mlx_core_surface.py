"""The `mlx.core` of metalloid: names, types, promotion and printing are MLX's."""

import inspect
import itertools
import operator
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metalloid.compat.mlx import core as mx

#: All public names of MLX 0.32.4, of its modules, and of its array class.
NAMES = (Path(__file__).parent / "golden" / "mlx_core_names.txt").read_text().split()
DTYPES = (
    "bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
    "float32", "float64", "bfloat16", "complex64",
)  # fmt: skip


@pytest.fixture
def mlx():
    return pytest.importorskip("mlx.core", reason="the package mlx is not installed")


def test_all_public_names_are_there():
    assert len([name for name in NAMES if "." not in name]) == 315
    missing = []
    for name in NAMES:
        try:
            operator.attrgetter(name)(mx)
        except AttributeError:
            missing.append(name)
    assert not missing


def test_operations_take_a_stream_and_are_documented():
    for name in ("add", "exp", "sum", "reshape", "matmul", "conv2d", "fft.fft", "linalg.qr"):
        function = operator.attrgetter(name)(mx)
        assert inspect.signature(function).parameters["stream"].kind is inspect._KEYWORD_ONLY
        assert function.__doc__
    with pytest.raises(TypeError, match="expected a stream or a device, got 3"):
        mx.exp(mx.array(1.0), stream=3)


def test_promotion_is_that_of_mlx(mlx):
    for a, b in itertools.product(DTYPES, repeat=2):
        expected = mlx.result_type(getattr(mlx, a), getattr(mlx, b))
        assert repr(mx.result_type(getattr(mx, a), getattr(mx, b))) == repr(expected), (a, b)
        assert mx.can_cast(getattr(mx, a), getattr(mx, b)) == mlx.can_cast(
            getattr(mlx, a), getattr(mlx, b)
        )


def test_categories_are_those_of_mlx(mlx):
    categories = [item.name for item in mx.DtypeCategory]
    for a, b in itertools.product([*DTYPES, *categories], repeat=2):
        expected = mlx.issubdtype(getattr(mlx, a), getattr(mlx, b))
        assert mx.issubdtype(getattr(mx, a), getattr(mx, b)) == expected, (a, b)


@pytest.mark.parametrize("value", [
    3, True, 1.5, 2 + 3j, [], [1, 2], [[1.5, 2], [3, 4e20]], [True, False], [1 + 2j, 3 - 4.5j],
    list(range(7)), [[[1], [2]], [[3], [4]]], [float("nan"), float("inf"), 1e-9], 2**40,
])  # fmt: skip
def test_values_become_the_same_arrays_and_texts(mlx, value):
    ours, theirs = mx.array(value), mlx.array(value)
    assert repr(ours) == repr(theirs)
    assert repr(ours.dtype) == repr(theirs.dtype)
    assert ours.shape == theirs.shape
    assert repr(ours.tolist()) == repr(theirs.tolist())


def test_printing_takes_a_precision():
    with mx.printoptions(precision=2):
        assert str(mx.array([1.0, 2.5])) == "array([1.00, 2.50], dtype=float32)"
    assert str(mx.array([1.0, 2.5])) == "array([1, 2.5], dtype=float32)"


def test_numbers_are_weak():
    assert (mx.array([1], mx.float16) * 2.5).dtype == mx.float16
    assert (mx.array([1], mx.int8) + 1).dtype == mx.int8
    assert (mx.array([1]) * 2.5).dtype == mx.float32
    assert (mx.array([True]) + 1).dtype == mx.int32
    with pytest.raises(ValueError, match="Converting 300 to uint8 would result in overflow"):
        mx.array([1], mx.uint8) + 300
    with pytest.raises(ValueError, match=r"Cannot perform addition on an mlx\.core\.array and str"):
        mx.array([1]) + "x"
    assert mx.array([1]) != "x"


def test_axes_out_of_range_are_index_and_value_errors():
    for error in (IndexError, ValueError):
        with pytest.raises(error, match=r"\[sum\] Axis 5 is out of bounds for array with 2 dim"):
            mx.sum(mx.zeros((2, 3)), axis=5)


@pytest.mark.needs("the CPU")
def test_devices_and_streams():
    assert mx.default_device() == mx.Device(mx.cpu)
    assert not mx.is_available(mx.gpu)
    with mx.stream(mx.new_stream(mx.cpu)) as none:
        assert none is None
        assert mx.default_stream(mx.cpu) != mx.Stream(mx.Device(mx.cpu), 0)
    assert repr(mx.default_stream(mx.cpu)) == "Stream(Device(cpu, 0), 0)"
    with pytest.raises(ValueError, match="Cannot set gpu device without gpu backend"):
        mx.set_default_device(mx.gpu)


def test_kernels_in_cuda_are_refused():
    with pytest.raises(RuntimeError, match="write the kernel in Metal"):
        mx.fast.cuda_kernel("k", [], ["out"], "")
    with pytest.raises(RuntimeError, match=r"use metalloid\.profile"):
        mx.metal.start_capture("x")


def test_one_process_is_a_group():
    group = mx.distributed.init()
    assert (group.rank(), group.size(), mx.distributed.is_available("ring")) == (0, 1, False)
    assert mx.distributed.all_sum(mx.array([1, 2])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="the group has one process"):
        mx.distributed.send(mx.array(1), 1)


def test_programs_find_it_as_mlx_core(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, mlx.core as mx, metalloid.compat.mlx.core\n"
        "assert mx is metalloid.compat.mlx.core and sys.argv[1:] == ['one']\n"
        "import mlx.core.fast; assert mlx.core.fast is mx.fast\n"
        "print(mx.zeros(2))\n"
        "assert mx.metal.is_available() and mx.default_device() == mx.gpu\n"
    )
    command = [sys.executable, "-m", "metalloid.compat.mlx", "--has-metal", str(program), "one"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "array([0, 0], dtype=float32)\n"


def test_mlx_cannot_be_replaced_after_its_import(mlx):
    from metalloid.compat import mlx as compat

    assert np.array(mlx.array([1])).tolist() == [1]
    with pytest.raises(RuntimeError, match=r"mlx\.core has already been imported"):
        compat.install()
