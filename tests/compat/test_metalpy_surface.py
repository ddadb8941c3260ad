"""compat.metalpy: every method with its parameters, what it returns, and what it refuses."""

import inspect
from array import array

import numpy as np
import pytest
from metalpy_operations import OPERATIONS, X, Y

from metalloid.compat.metalpy import MetalArray, MetalPy

A2, MATRIX, SCALED = ("A", "B", "rows", "cols"), ("A", "rows", "cols"), ("A", "s", "rows", "cols")
#: Names of the parameters of what is not a function of one array.
PARAMETERS = {
    **dict.fromkeys(("add", "sub", "multiply", "divide", "atan2"), ("a", "b")),
    "pow": ("a", "b"), "leaky_relu": ("a", "alpha"), "clip": ("a", "low", "high"),
    "broadcast_add": ("a", "b"), "broadcast_multiply": ("a", "b"),
    "hadamard": A2, "row_sum": MATRIX, "col_sum": MATRIX, "transpose": MATRIX,
    "row_scale": SCALED, "col_scale": SCALED, "matmul": ("A", "B", "M", "K", "N"),
    "slice": ("a", "start", "end"), "gather": ("source", "index_arr"), "array": ("data",),
    "launcher_1": ("kname", "arrays"), "launcher_2": ("kname", "a", "c"),
    "launcher_3": ("kname", "a", "low", "high"), "launcher_4": ("kname", "a", "b"),
    "launcher_5": ("kname", *A2), "launcher_6": ("kname", *MATRIX, "out_length"),
    "launcher_7": ("kname", *SCALED), "launcher_8": ("kname", *MATRIX),
    "launcher_9": ("kname", "A", "B", "M", "N", "K"), "launcher_10": ("kname", "a", "start", "end"),
    "launcher_11": ("kname", "source", "index_arr"), "launcher_12": ("init", "final", "a"),
    "launcher_13": ("init", "final", "a"),
}  # fmt: skip
NUMBERS = ("sum", "product", "max", "min", "mean")
INDICES = ("argmax", "argmin")


@pytest.fixture(scope="module")
def gpu():
    return MetalPy()


def test_the_methods_and_their_parameters():
    methods = {
        name: tuple(inspect.signature(method).parameters)[1:]
        for name, method in inspect.getmembers(MetalPy, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods == {**dict.fromkeys(OPERATIONS, ("a",)), **PARAMETERS}
    assert inspect.signature(MetalPy.leaky_relu).parameters["alpha"].default == 0.01
    assert inspect.signature(MetalPy).parameters["kernel_path"].default == "metal_kernels.metallib"
    parameters = inspect.signature(MetalArray).parameters
    assert [(p.name, p.default) for p in parameters.values()] == [
        ("gpu_device", inspect.Parameter.empty), ("data", inspect.Parameter.empty),
        ("length", None), ("buffer", None), ("typecode", "f"),
    ]  # fmt: skip


def test_attributes(gpu):
    own = MetalPy()
    assert own.kernel_cache == {}
    own.negate(own.array([1.0]))
    assert list(own.kernel_cache) == ["negate_kernel"]
    for name in ("device", "queue", "library"):
        assert getattr(own, name) is not None
    a = gpu.array([1, 2, 3])
    assert (a.gpu_device, a.length, a.typecode) == (gpu.device, 3, "f")
    assert a.buffer is not None
    assert type(a.to_array()) is array
    assert type(a.to_list()) is list


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.sample(8)
def test_what_operations_return(gpu, name):
    arrays, more, _ = OPERATIONS[name]
    given = [gpu.array(x[:20].tolist()) for x in (X, Y)][: len(arrays)]
    if "rows" in more or "M" in more:
        more = {"rows": 4, "cols": 5} if "rows" in more else {"M": 4, "K": 5, "N": 4}
        given[1:] = [gpu.array([1.0] * {"row_scale": 4, "col_scale": 5}.get(name, 20))][
            : len(given) - 1
        ]
    result = getattr(gpu, name)(*given, **more)
    if name in NUMBERS:
        assert type(result) is float
    elif name in INDICES:
        assert [type(part) for part in result] == [int, float]
    else:
        assert (type(result), result.typecode) == (MetalArray, "f")
        assert result is not given[0]
        lengths = {"row_sum": 4, "col_sum": 5, "matmul": 16, "slice": 10}
        assert result.length == len(result.to_list()) == lengths.get(name, 20)


@pytest.mark.parametrize("name", [*OPERATIONS, "gather"])
def test_operations_refuse_what_is_no_array(gpu, name):
    arrays, more, _ = OPERATIONS.get(name, ((X, X), {}, None))
    for wrong in ([1.0], X, None, array("f", [1])):
        with pytest.raises(TypeError, match=rf"{name}\(\) expects (a )?MetalArray input"):
            getattr(gpu, name)(*[wrong] * len(arrays), **more)


WRONG = {
    "hadamard": (({"rows": 3, "cols": 5},), 2), "row_sum": (({"rows": 3, "cols": 5},), 1),
    "col_sum": (({"rows": 5, "cols": 5},), 1), "transpose": (({"rows": 1, "cols": 5},), 1),
    "row_scale": (({"rows": 4, "cols": 5}, {"rows": 3, "cols": 5}), 2),
    "col_scale": (({"rows": 4, "cols": 5}, {"rows": 3, "cols": 5}), 2),
    "matmul": (({"M": 4, "K": 5, "N": 3}, {"M": 3, "K": 5, "N": 4}), 2),
    "slice": (({"start": -1, "end": 2}, {"start": 3, "end": 2}, {"start": 0, "end": 21}), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_operations_refuse_sizes(gpu, name):
    a = gpu.array(X[:20].tolist())
    cases, count = WRONG[name]
    for more in cases:
        with pytest.raises(ValueError, match=name):
            getattr(gpu, name)(*[a] * count, **more)


@pytest.mark.parametrize("name", [*NUMBERS, *INDICES])
def test_nothing_cannot_be_reduced(gpu, name):
    with pytest.raises(ValueError, match=r"cannot reduce an empty array \(N=0\)\.$"):
        getattr(gpu, name)(gpu.array([]))


def test_numbers(gpu):
    a = gpu.array([-2.0])
    assert gpu.pow(a, np.float64(3)).to_list() == [-8.0]  # a float of Python's
    assert gpu.leaky_relu(a).to_list() == [np.float32(-2) * np.float32(0.01)]
    for wrong in (np.float32(2), "2", None, [2.0]):
        for call in (
            lambda n: gpu.pow(a, n), lambda n: gpu.leaky_relu(a, n), lambda n: gpu.clip(a, n, 1.0),
            lambda n: gpu.clip(a, 1.0, n),
        ):  # fmt: skip
            with pytest.raises(TypeError):
                call(wrong)


def test_launchers(gpu):
    a, b = gpu.array([1.0, 2.0, 3.0, 4.0]), gpu.array([5.0, 6.0, 7.0, 8.0])
    two = gpu.array([10.0, 100.0])
    index = gpu.array(array("I", [3, 0]))
    results = [
        gpu.launcher_1("add_kernel", [a, b]), gpu.launcher_2("pow_kernel", a, 2),
        gpu.launcher_3("clip_kernel", a, 2, 3), gpu.launcher_4("broadcast_add_kernel", a, two),
        gpu.launcher_5("hadamard_mat_kernel", a, b, 2, 2),
        gpu.launcher_6("col_sum_kernel", a, 2, 2, 2),
        gpu.launcher_7("row_scale_kernel", a, two, 2, 2),
        gpu.launcher_8("transpose_kernel", a, 2, 2),
        gpu.launcher_9("matmul_kernel", a, two, 2, 1, 2),
        gpu.launcher_10("slice_kernel", a, 1, 3), gpu.launcher_11("gather_kernel", a, index),
    ]  # fmt: skip
    assert [result.to_list() for result in results] == [
        [6, 8, 10, 12], [1, 4, 9, 16], [2, 2, 3, 3], [11, 102, 13, 104], [5, 12, 21, 32], [4, 6],
        [10, 20, 300, 400], [1, 3, 2, 4], [210, 430], [2, 3], [4, 1],
    ]  # fmt: skip
    assert gpu.launcher_12("sum_reduce_kernel", "sum_reduce_final_kernel", a) == 10.0
    assert gpu.launcher_13("argmax_reduce_kernel", "argmax_reduce_final_kernel", a) == (3, 4.0)
    calls = (
        lambda: gpu.launcher_5("no", a, b, 2, 2), lambda: gpu.launcher_6("no", a, 2, 2, 2),
        lambda: gpu.launcher_7("no", a, two, 2, 2), lambda: gpu.launcher_8("no", a, 2, 2),
        lambda: gpu.launcher_9("no", a, two, 2, 1, 2), lambda: gpu.launcher_10("no", a, 1, 3),
        lambda: gpu.launcher_11("no", a, index), lambda: gpu.launcher_12("no", "no", a),
        lambda: gpu.launcher_13("no", "no", a),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(
            ValueError, match=r"^Kernel function 'no' not found in Metal library\.$"
        ):
            call()


def test_types_are_not_checked(gpu):
    """Only `gather` looks at them; elsewhere the bits of integers are those of floats."""
    bits = gpu.array(array("I", np.float32([1.5, -2]).view(np.uint32).tolist()))
    assert gpu.add(bits, bits).to_list() == [3.0, -4.0]
    assert gpu.slice(bits, 2, 2).to_list() == []
