"""The 46 operations of MetalPy."""

from __future__ import annotations

from typing import Any

from metalloid.compat.metalpy.launchers import DEFAULT_PATH, Launchers
from metalloid.compat.metalpy.metal_array import MetalArray


def _check(name: str, *arrays: Any) -> None:
    if not all(isinstance(a, MetalArray) for a in arrays):
        which = "a MetalArray input" if len(arrays) == 1 else "MetalArray inputs"
        raise TypeError(f"Error: {name}() expects {which}.")


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | float):
        raise TypeError(f"Error: {name}() expects a number, got {type(value).__name__}.")


def _check_length(name: str, what: str, a: MetalArray, required: int) -> None:
    if a.length != required:
        raise ValueError(f"Error: {name}() expects {required} elements of {what}, got {a.length}.")


def _of_two(name: str, kernel: str) -> Any:
    def operation(self: Launchers, a: MetalArray, b: MetalArray) -> MetalArray:
        _check(name, a, b)
        if a.length != b.length:
            raise ValueError("All MetalArrays must have equal length for elementwise ops.")
        return self.launcher_1(kernel, [a, b])

    return _documented(operation, name, f"`{kernel}` of two arrays of one length.")


def _unary(name: str) -> Any:
    def operation(self: Launchers, a: MetalArray) -> MetalArray:
        _check(name, a)
        return self.launcher_1(f"{name}_kernel", [a])

    return _documented(operation, name, f"`{name}_kernel` of each element.")


def _repeated(name: str) -> Any:
    def operation(self: Launchers, a: MetalArray, b: MetalArray) -> MetalArray:
        _check(name, a, b)
        if b.length == 0:
            raise ValueError(f"Error: {name}() cannot repeat an empty array.")
        return self.launcher_4(f"{name}_kernel", a, b)

    return _documented(operation, name, f"`{name}_kernel` of `a` and of `b` again and again.")


def _reduction(name: str) -> Any:
    def operation(self: Launchers, a: MetalArray) -> float:
        _check_reducible(name, a)
        return self.launcher_12(f"{name}_reduce_kernel", f"{name}_reduce_final_kernel", a)

    return _documented(operation, name, "A number of all elements.")


def _arg_reduction(name: str) -> Any:
    def operation(self: Launchers, a: MetalArray) -> tuple[int, float]:
        _check_reducible(name, a)
        return self.launcher_13(f"{name}_reduce_kernel", f"{name}_reduce_final_kernel", a)

    return _documented(operation, name, "The place of an element, and the element.")


def _check_reducible(name: str, a: Any) -> None:
    _check(name, a)
    if a.length == 0:
        raise ValueError(f"Error: {name}() cannot reduce an empty array (N=0).")


def _documented(operation: Any, name: str, text: str) -> Any:
    operation.__name__, operation.__doc__ = name, text
    operation.__qualname__ = f"MetalPy.{name}"
    return operation


class MetalPy(Launchers):
    """The device, its kernels, and what they compute.

    Parameters
    ----------
    kernel_path : str
        A ``.metal`` file with the 51 kernels, or the ``.metallib`` of that name, which is code for
        Apple's GPUs. Without, ours.

    Raises
    ------
    RuntimeError
        If the file cannot be loaded.

    Examples
    --------
    >>> gpu = MetalPy()  # doctest: +ELLIPSIS
    Using GPU: ...
    >>> gpu.add(gpu.array([1.0, 2.0]), gpu.array([3.0, 4.0])).to_list()
    [4.0, 6.0]
    """

    def __init__(self, kernel_path: str = DEFAULT_PATH) -> None:
        super().__init__(kernel_path)
        print(f"Using GPU: {self.device.info().description}")

    add, sub = _of_two("add", "add_kernel"), _of_two("sub", "sub_kernel")
    multiply, divide = _of_two("multiply", "multiply_kernel"), _of_two("divide", "division_kernel")
    atan2 = _of_two("atan2", "atan2_kernel")
    negate, abs, square = _unary("negate"), _unary("abs"), _unary("square")
    sqrt, exp, log = _unary("sqrt"), _unary("exp"), _unary("log")
    sin, cos, tan, asin = _unary("sin"), _unary("cos"), _unary("tan"), _unary("asin")
    floor, ceil, sign, round = _unary("floor"), _unary("ceil"), _unary("sign"), _unary("round")
    relu, sigmoid, tanh = _unary("relu"), _unary("sigmoid"), _unary("tanh")
    softplus, swish, gelu = _unary("softplus"), _unary("swish"), _unary("gelu")
    broadcast_add, broadcast_multiply = _repeated("broadcast_add"), _repeated("broadcast_multiply")
    sum, product = _reduction("sum"), _reduction("product")
    max, min = _reduction("max"), _reduction("min")
    argmax, argmin = _arg_reduction("argmax"), _arg_reduction("argmin")

    def pow(self, a: MetalArray, b: float) -> MetalArray:
        """Each element to the power of `b`."""
        _check("pow", a)
        _check_number("pow", b)
        return self.launcher_2("pow_kernel", a, b)

    def leaky_relu(self, a: MetalArray, alpha: float = 0.01) -> MetalArray:
        """Multiply negative elements by `alpha`."""
        _check("leaky_relu", a)
        _check_number("leaky_relu", alpha)
        return self.launcher_2("leaky_relu_kernel", a, alpha)

    def clip(self, a: MetalArray, low: float, high: float) -> MetalArray:
        """Each element, but not below `low` nor above `high`."""
        _check("clip", a)
        _check_number("clip", low)
        _check_number("clip", high)
        return self.launcher_3("clip_kernel", a, low, high)

    def mean(self, a: MetalArray) -> float:
        """The sum over the number of elements."""
        _check_reducible("mean", a)
        return float(self.sum(a)) / a.length

    def hadamard(self, A: MetalArray, B: MetalArray, rows: int, cols: int) -> MetalArray:
        """Two matrices, element by element."""
        _check("hadamard", A, B)
        _check_length("hadamard", "A", A, rows * cols)
        _check_length("hadamard", "B", B, rows * cols)
        return self.launcher_5("hadamard_mat_kernel", A, B, rows, cols)

    def row_sum(self, A: MetalArray, rows: int, cols: int) -> MetalArray:
        """The sum of each row."""
        _check("row_sum", A)
        _check_length("row_sum", "A", A, rows * cols)
        return self.launcher_6("row_sum_kernel", A, rows, cols, rows)

    def col_sum(self, A: MetalArray, rows: int, cols: int) -> MetalArray:
        """The sum of each column."""
        _check("col_sum", A)
        _check_length("col_sum", "A", A, rows * cols)
        return self.launcher_6("col_sum_kernel", A, rows, cols, cols)

    def row_scale(self, A: MetalArray, s: MetalArray, rows: int, cols: int) -> MetalArray:
        """Each row times its factor."""
        _check("row_scale", A, s)
        _check_length("row_scale", "A", A, rows * cols)
        _check_length("row_scale", "s", s, rows)
        return self.launcher_7("row_scale_kernel", A, s, rows, cols)

    def col_scale(self, A: MetalArray, s: MetalArray, rows: int, cols: int) -> MetalArray:
        """Each column times its factor."""
        _check("col_scale", A, s)
        _check_length("col_scale", "A", A, rows * cols)
        _check_length("col_scale", "s", s, cols)
        return self.launcher_7("col_scale_kernel", A, s, rows, cols)

    def transpose(self, A: MetalArray, rows: int, cols: int) -> MetalArray:
        """Columns as rows."""
        _check("transpose", A)
        _check_length("transpose", "A", A, rows * cols)
        return self.launcher_8("transpose_kernel", A, rows, cols)

    def matmul(self, A: MetalArray, B: MetalArray, M: int, K: int, N: int) -> MetalArray:
        """The product of A, which is (M, K), and B, which is (K, N)."""
        _check("matmul", A, B)
        _check_length("matmul", "A", A, M * K)
        _check_length("matmul", "B", B, K * N)
        return self.launcher_9("matmul_kernel", A, B, M, N, K)

    def slice(self, a: MetalArray, start: int, end: int) -> MetalArray:
        """Elements from `start` up to but without `end`."""
        _check("slice", a)
        if not isinstance(start, int) or not isinstance(end, int):
            raise TypeError("Error: slice() expects integer bounds.")
        if not 0 <= start <= end <= a.length:
            raise ValueError(f"Error: slice() bounds {start}:{end} are not within {a.length}.")
        return self.launcher_10("slice_kernel", a, start, end)

    def gather(self, source: MetalArray, index_arr: MetalArray) -> MetalArray:
        """Elements at indices; the original reads whatever is there if one is out of range."""
        _check("gather", source, index_arr)
        if index_arr.typecode != "I":
            raise TypeError("Error: gather() expects indices of typecode 'I'.")
        if index_arr.length == 0:
            raise ValueError("Error: gather() expects at least one index.")
        largest = max(index_arr.to_array())
        if largest >= source.length:
            raise IndexError(f"Error: gather() index {largest} is not within {source.length}.")
        return self.launcher_11("gather_kernel", source, index_arr)
