"""Functions in the graph: of the host, that a well-kept library has, and those that launch kernels.

The host's get NumPy arrays on the memory of the nodes; their results become memory of nodes.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from metalloid.arrays.execution.small_results import take_copy
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.index_checks import first_word, pending, verify_pending
from metalloid.arrays.ir.layout import (
    Ints,
    Layout,
    apply_view,
    contiguous,
    is_contiguous,
    reach,
)
from metalloid.arrays.ir.memory import Memory, bucket_size, pool_of
from metalloid.arrays.ir.native import library, when_loaded
from metalloid.arrays.ir.node import (
    BUFFER,
    CUSTOM_CALL,
    GET_TUPLE_ITEM,
    TRACED,
    VIEW,
    Node,
    expression,
)
from metalloid.arrays.ir.operands import is_number, to_node
from metalloid.kernels.metal_kernel_instances import MetalKernelInstance
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Launch as BoundLaunch

#: Results up to this size are copied to memory of the pool, which is faster to read and to pass on
#: than imported memory.
_COPIED_BYTES = 2**19


@dataclass(frozen=True)
class HostCall:
    """A function from NumPy arrays to NumPy arrays.

    Attributes
    ----------
    function : callable
        Called with the arrays and then the parameters. It is part of the key of a plan: a function
        of a module, not one made for the occasion.
    parameters : tuple
    results : tuple of (dtype, shape)
    result_nodes : list of (weakref.ref, int)
        Nodes with the value of a result, and the index of that result.
    is_launched : bool
        Whether plans may launch it, which then depend on its parameters.
    """

    is_launched: ClassVar[bool] = False
    function: Callable[..., Any]
    parameters: tuple[Any, ...]
    results: tuple[tuple[DType, Ints], ...]
    result_nodes: list[tuple[weakref.ref[Node], int]] = field(default_factory=list, compare=False)

    def add_result(self, node: Node, index: int) -> None:
        """Materialize a node when the call has run."""
        self.result_nodes.append((weakref.ref(node), index))

    def copy(self) -> HostCall:
        """The same function, for other operands."""
        return replace(self, result_nodes=[])

    @property
    def name(self) -> str:
        """Its name in `explain`."""
        return self.function.__name__.strip("_")

    def as_launch(self, args: Sequence[Layout], device: Device) -> BoundLaunch | None:
        """A launch that does the same, from addresses of operands and results; usually None.

        Only of calls with `is_launched`, or of products.

        Parameters
        ----------
        args : sequence of Layout
            Of the operands, from the addresses on.
        """
        return None

    def run(self, args: Sequence[Node], device: Device, wait: bool) -> list[Memory]:
        """Call the function, and store its results."""
        with np.errstate(all="ignore"):  # as in kernels
            given = [a if (a := read_array()(arg)) is not None else to_host(arg) for arg in args]
            results = self.function(*given, *self.parameters)
            if not isinstance(results, tuple):
                results = (results,)
            arrays = [
                np.ascontiguousarray(value, dtype).reshape(shape)
                for value, (dtype, shape) in zip(results, self.results, strict=True)
            ]
        if device.memory == "host" and sum(array.nbytes for array in arrays) <= _COPIED_BYTES:
            return [from_numpy(array, device).memory for array in arrays]  # type: ignore[misc]
        return [_memory_of(_unaliased(given, array), device) for array in arrays]


@dataclass(frozen=True)
class LaunchCall(HostCall):
    """A function from evaluated nodes to memory that launches kernels of the library."""

    def run(self, args: Sequence[Node], device: Device, wait: bool) -> list[Memory]:
        """Call the function. Its launches have finished only if `wait` is set."""
        memories: list[Memory] = self.function(*args, *self.parameters)
        if wait:
            for memory in memories:
                memory.bound.wait()
        return memories


def _unaliased(given: Sequence[np.ndarray], result: np.ndarray) -> np.ndarray:
    """A result in its own memory, as a function may return one of its arguments."""
    is_shared = any(np.may_share_memory(result, array) for array in given)
    return result.copy() if is_shared else result


def _memory_of(array: np.ndarray, device: Device) -> Memory:
    memory = from_numpy(array, device, copy=False).memory
    assert memory is not None
    return memory


@functools.cache
def read_array(is_writable: bool = False) -> Callable[[Node], np.ndarray | None]:
    """A function from a leaf to an array on its memory, which is None for other nodes."""
    functions = library()
    if functions is None:
        return lambda node: None
    read: Callable[[Node], np.ndarray | None]
    read = functions.mtl_host_array(ctypes.py_object((np.ndarray, BUFFER, is_writable)))
    return read


class _Reads:
    """The number of reads by `to_host`, and the function of the library that counts others."""

    count = 0
    others: Callable[[], int] | None = None


@when_loaded
def _count_reads(functions: Any) -> None:
    functions.mtl_host_reads.restype = ctypes.c_uint64
    _Reads.others = functions.mtl_host_reads


def host_reads() -> int:
    """The number of times that the host may have read values of arrays, in any thread."""
    return _Reads.count + (_Reads.others() if _Reads.others is not None else 0)


def to_host(node: Node, read_only: bool = False) -> np.ndarray:
    """The values of an evaluated node, in place if the host can access them.

    Parameters
    ----------
    read_only : bool
        For memory that is shared; a copy belongs to the caller.
    """
    assert node.memory is not None
    _Reads.count += 1
    if node.device.memory != "own":
        strides, offset = node.data
        return node.memory.host_view(node.dtype, node.shape, strides, offset, read_only)
    if node.device in pending:
        verify_pending(node.device, first_number)
    if 0 in node.shape:
        return np.empty(node.shape, node.dtype)
    low, high = reach(node.layout)
    size = node.dtype.itemsize
    raw = take_copy(node.memory)
    if raw is None:
        window = node.memory.bound.address + low * size, (high - low + 1) * size
        (raw,) = node.device.copy_out_combined([window])
    else:
        raw = raw[low * size : (high + 1) * size]
    elements = raw.view(node.dtype)
    if is_contiguous(node.layout):
        return elements.reshape(node.shape)
    strides = tuple(step * size for step in node.data[0])
    first = elements[node.data[1] - low :]
    return np.lib.stride_tricks.as_strided(first, node.shape, strides)


def first_number(memory: Memory) -> int:
    """The unsigned integer at the start of computed memory."""
    if memory.device.memory != "own":
        return first_word(memory)
    raw = take_copy(memory)
    if raw is None:
        (raw,) = memory.device.copy_out_combined([(memory.bound.address, 8)])
    return int(raw[:8].view(np.uint64)[0])


class KernelCall:
    """A kernel made by `metal_kernel`, launched when its results are needed.

    Parameters
    ----------
    sizes : object, optional
        The same object for calls of the kernel with equal sizes and results.

    Attributes
    ----------
    result_nodes : list of (weakref.ref, int)
        As those of a `HostCall`.
    """

    is_launched = False

    def __init__(self, kernel: Any, inputs: Sequence[Any], options: dict[str, Any],
                 results: tuple[tuple[DType, Ints], ...], sizes: Any = None) -> None:  # fmt: skip
        self.kernel, self.options, self.results, self._sizes = kernel, options, results, sizes
        self.name = str(kernel.name)
        self._numbers: list[Any] = [None] * len(inputs)
        self._has_numbers = False
        for k, value in enumerate(inputs):
            if not hasattr(value, "_node") and (is_number(value) or isinstance(value, np.generic)):
                self._numbers[k] = value
                self._has_numbers = True
        self.result_nodes: list[tuple[weakref.ref[Node], int]] = []

    @property
    def _key(self) -> Any:
        return self.kernel, self._sizes, repr(self._numbers), repr(self.options), self.results

    def add_result(self, node: Node, index: int) -> None:
        """Materialize a node when the kernel has run."""
        self.result_nodes.append((weakref.ref(node), index))

    def copy(self) -> KernelCall:
        """The same kernel, for other operands."""
        other = copy.copy(self)
        other.result_nodes = []
        return other

    @property
    def operand_names(self) -> list[str]:
        """Names of the inputs that are arrays."""
        pairs = zip(self.kernel.input_names, self._numbers, strict=True)
        return [name for name, number in pairs if number is None]

    @property
    def result_names(self) -> Sequence[str]:
        """Names of the outputs."""
        names: Sequence[str] = self.kernel.output_names
        return names

    @property
    def vjp_rule(self) -> Any:
        """The derivative that the user has stated."""
        return self.kernel.vjp_rule

    def instance(self, arrays: Sequence[Any], device: Device) -> MetalKernelInstance:
        """The kernel that is launched for arrays."""
        return MetalKernelInstance(
            self.kernel, self.inputs(arrays), self.results, self.options, device
        )

    def inputs(self, arrays: Sequence[Any]) -> list[Any]:
        """All inputs: arrays and numbers."""
        left = iter(arrays)
        return [next(left) if number is None else number for number in self._numbers]

    def operands(self, inputs: Sequence[Any], device: Device) -> list[Node]:
        """The nodes of the array inputs, on a device.

        Inputs that are not `Array` are copied: they may change before the kernel runs.
        """
        nodes: list[Node] = []
        for k, value in enumerate(inputs):
            node = getattr(value, "_node", None)
            if node is not None:
                same = node.device is device
                nodes.append(node if same else value.to_device(device)._node)
            elif self._numbers[k] is None:
                nodes.append(to_node(value, self.name, device=device))
        return nodes

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelCall) and self._key == other._key

    def run(self, args: Sequence[Node], device: Device, wait: bool) -> list[Memory]:
        """Launch it."""
        results = None if self._has_numbers or self._sizes is None else self._repeated(args, device)
        if results is not None:
            return results
        read = read_array()
        arrays = [a if (a := read(node)) is not None else to_host(node) for node in args]
        results = self.kernel(inputs=self.inputs(arrays), device=device, **self.options)
        return [_memory_of(result, device) for result in results]

    def _repeated(self, args: Sequence[Node], device: Device) -> list[Memory] | None:
        """Launch it like an earlier call, if there was one on memory of the same layout."""
        if device.recording is not None:
            return None
        inputs: list[Any] = []
        types: list[Any] = []
        for arg in args:
            memory, (strides, offset) = arg.memory, arg.data
            assert memory is not None
            if offset or not memory.is_own or strides != _row_major(arg.shape):
                return None
            types += arg.dtype, arg.shape
            inputs.append(memory.bound)
        bound = self.kernel.bound_call(device, self._sizes, types)
        if bound is None:
            return None
        new = pool_of(device).memory
        memories = [new(_bucket_size(result.nbytes)) for result in bound.results]
        bound.run(inputs, [memory.bound for memory in memories])
        return memories


_row_major = functools.lru_cache(maxsize=1024)(row_major)
_contiguous = functools.lru_cache(maxsize=1024)(contiguous)
_bucket_size = functools.lru_cache(maxsize=1024)(bucket_size)


def host_call(function: Callable[..., Any], args: Sequence[Node], parameters: tuple[Any, ...],
              *results: tuple[DType, Ints]) -> tuple[Node, ...]:  # fmt: skip
    """Nodes of the results of a host function."""
    return call_nodes(HostCall(function, parameters, results), args)


def launch_call(function: Callable[..., list[Memory]], args: Sequence[Node],
                parameters: tuple[Any, ...],
                *results: tuple[DType, Ints]) -> tuple[Node, ...]:  # fmt: skip
    """Nodes of the results of a function that launches kernels."""
    return call_nodes(LaunchCall(function, parameters, results), args)


def run_call(roots: Sequence[Node], wait: bool) -> bool:
    """Run the call of which all roots are results or views of results, without a plan.

    Its operands must have values. Returns whether the roots have theirs; if not, there is no such
    call, it is better launched by a plan, or it has run and a view of its result needs a copy.
    """
    results = [_viewed(root) for root in roots]
    first = results[0]
    if first.kind is not GET_TUPLE_ITEM:
        return False
    (node,) = first.args
    if node.kind is not CUSTOM_CALL:
        return False
    for arg in node.args:
        if arg.kind is not BUFFER:
            return False
    for result in results:
        if result.kind is not GET_TUPLE_ITEM or result.args[0] is not node:
            return False
    call, device = node.data, node.device
    is_host = isinstance(call, HostCall) and device.recording is None
    if is_host and call.as_launch([arg.layout for arg in node.args], device) is not None:
        return False  # a plan launches it, and repeated runs take no time in Python
    assign_results(node.data, node.data.run(node.args, node.device, wait))
    return all(_materialize_view(root) for root in roots)


def _viewed(node: Node) -> Node:
    """The node of which one is a view; itself if it is none."""
    while node.kind is VIEW:
        (node,) = node.args
    return node


def _materialize_view(node: Node) -> bool:
    """Make a view of a leaf a leaf; whether its elements are in memory in the view's order."""
    if node.kind is VIEW:
        view_op, (operand,) = node.data, node.args
        if _materialize_view(operand):
            layout = apply_view(operand.layout, view_op)
            if layout is not None and operand.memory is not None:
                node.materialize(operand.memory, layout)
    return node.kind is BUFFER


def call_nodes(call: HostCall | KernelCall, args: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes of the results of a call."""
    device = args[0].device
    node = expression(CUSTOM_CALL, call, tuple(args), *call.results[0], device)
    results = []
    for k, (dtype, shape) in enumerate(call.results):
        result = expression(GET_TUPLE_ITEM, k, (node,), dtype, shape, device)
        call.add_result(result, k)
        results.append(result)
    return tuple(results)


def assign_results(call: HostCall | KernelCall, memories: Sequence[Memory]) -> None:
    """Materialize all results whose nodes are still referenced, requested or not."""
    for reference, index in call.result_nodes:
        node = reference()
        if node is not None and not node.flags & TRACED:
            node.materialize(memories[index], _contiguous(call.results[index][1]))
