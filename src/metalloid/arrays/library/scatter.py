"""Scatters by the functions of `scatter.metal`, which update a copy of their first operand.

On a few cores, a thread takes all new elements in order, or those of a column. On SIMT devices a
thread takes one of them; atomic operations combine those with the same index. Where there are none,
or their order matters, indices are sorted first.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.execution.calls import host_call
from metalloid.arrays.execution.known_evaluations import plans
from metalloid.arrays.ir.dtypes import (
    DType,
    bool_,
    complex64,
    float32,
    int32,
    int64,
    kind_of,
    msl_name,
    uint32,
)
from metalloid.arrays.ir.layout import Ints, Layout
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import (
    BUFFER,
    VIEW,
    Node,
    apply,
    broadcast,
    constant,
    in_memory,
    reshape,
)
from metalloid.arrays.ir.operands import op
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.ir.primitives import Implementation, bind, implement
from metalloid.arrays.lowering.indexing import gathered
from metalloid.kernels.operands import MAX_ELEMENTS
from metalloid.runtime.launch.program import Size
from metalloid.settings import settings

#: By function, the struct in `scatter.metal`; and for booleans, which are bytes there.
_OPS = {"set": "Set", "add": "Add", "multiply": "Multiply", "maximum": "Maximum",
        "minimum": "Minimum"}  # fmt: skip
_OPS_OF_BOOLS = {**_OPS, "add": "Maximum", "multiply": "Minimum"}
#: Narrower rows do not fill a simdgroup, whose masked accesses take three times as long as a loop.
_FEW_COLUMNS = 32
_COMPLEX_FILES = ("complex", "complex_functions")
#: Methods.
IN_ORDER, LAST, ATOMIC, SORTED = "in order", "last", "atomic", "sorted"


def sums_by_index(new: Node, index: Node, count: int) -> Node:
    """For each index below `count`, the sum of the new elements that have it."""
    zeros = broadcast(constant(0, new.dtype, new.device), (count,))
    return bind("scatter", [zeros, new, index], ("add",), (new.dtype, (count,)))[0]


def _is_supported(base: Node, new: Node, *more: Any) -> bool:
    function = more[-1]
    has_kernel = function in ("subtract", *_OPS)
    has_kernel &= kind_of(base.dtype) != "c" or function not in ("maximum", "minimum")
    return has_kernel and max(base.size, new.size) <= MAX_ELEMENTS


def _by_kernels(base: Node, new: Node, *more: Any) -> Node:
    *indices, function = more
    if not base.size or not new.size:
        return base
    rows, row = math.prod(base.shape[: len(indices)]), indices[0]
    for extent, index in zip(base.shape[1:], indices[1:], strict=False):
        row = apply(OPS["multiply"], int64, row, constant(extent, int64, base.device))
        row = apply(OPS["add"], int64, row, index)
    row = reshape(row, (row.size,))
    value = _only_element(new)
    is_constant = value is not None
    values = new if value is None else value
    if function == "subtract":
        values, function = apply(OPS["negative"], base.dtype, values), "add"
    method = _method(base.dtype, function, base.device.traits.is_simt)
    operands = [base, values, row]
    if method == SORTED:
        (order,) = bind("argsort", [row], (0, False, settings.sorting), (int64, row.shape))
        operands[2:] = [gathered(row, [0], [order]), order]
    scatter = _Scatter(base.dtype, function, rows, row.size, base.size // rows, is_constant)
    return library_call(_call(method, scatter), operands, base.dtype, base.shape)


def _only_element(node: Node) -> Node | None:
    """The element whose view a node is, if all of its elements are the same one."""
    while node.kind is VIEW and node.size > 1:
        (node,) = node.args
    if node.size == 1:
        return reshape(node, (1,))
    if node.kind is BUFFER and node.memory is not None and not any(node.data[0]):
        return in_memory(node.memory, Layout((1,), (1,), node.data[1]), node.dtype)
    return None


def _method(dtype: DType, function: str, is_simt: bool) -> str:
    """The method that combines elements with the same index."""
    if not is_simt:
        return IN_ORDER
    if function == "set":
        return LAST
    kind = kind_of(dtype)
    if settings.deterministic and kind in "fc" and function in ("add", "multiply"):
        return SORTED
    if dtype.itemsize <= 4:
        return ATOMIC
    has_halves = kind in "iu" or dtype == complex64
    return ATOMIC if function == "add" and has_halves else SORTED


class _Scatter(NamedTuple):
    """Parameters of a scatter.

    Attributes
    ----------
    dtype : numpy.dtype
    function : str
    rows, new_rows, inner : int
        Rows of the array, new rows, and the elements of a row.
    is_constant : bool
        Whether there is one new element for all.
    """

    dtype: DType
    function: str
    rows: int
    new_rows: int
    inner: int
    is_constant: bool

    @property
    def type_(self) -> str:
        """The type of elements in MSL."""
        return "uchar" if self.dtype == bool_ else msl_name(self.dtype)

    @property
    def op(self) -> str:
        """The struct in `scatter.metal`."""
        return "numpy::" + (_OPS_OF_BOOLS if self.dtype == bool_ else _OPS)[self.function]

    @property
    def step(self) -> int:
        """Distance of new elements; a literal, as those of neighbouring threads are contiguous."""
        return int(not self.is_constant)

    @property
    def element(self) -> str:
        """The new element of a thread."""
        return "x0[0]" if self.is_constant else "x0[at.x]"

    def launch(self, stage: str, body: str, threads: int, reads: Ints, writes: Ints = (2,),
               group_size: Size | None = None) -> LibraryLaunch:  # fmt: skip
        """A launch, whose text may use ``params.count`` and ``params.inner``."""
        return LibraryLaunch(
            name=f"scatter_{self.function}_{stage}",
            body=body,
            files=(*(_COMPLEX_FILES if kind_of(self.dtype) == "c" else ()), "scatter"),
            reads=reads,
            writes=writes,
            numbers=(("count", self.new_rows), ("inner", self.inner)),
            threads=(threads, 1, 1),
            group_size=group_size,
        )


@functools.lru_cache(maxsize=1024)
def _call(method: str, scatter: _Scatter) -> LibraryCall:
    """The launches of a scatter.

    The operands after the array are new elements, the index of each of their rows, and for `SORTED`
    the order that sorts these, which are sorted then.
    """
    temporaries = ((uint32, (scatter.rows,)),) if method == LAST else ()
    return LibraryCall(_LAUNCHES[method](scatter), temporaries, is_update=True)


def _in_order(scatter: _Scatter) -> tuple[LibraryLaunch, ...]:
    """One thread takes all new elements, or a thread those of a column."""
    type_, step = scatter.type_, scatter.step
    function = f"numpy::scatter_in_order<{scatter.op}, {step}>"
    to, from_ = f"(device {type_} *)out", f"(device const {type_} *)x0"
    if scatter.inner < _FEW_COLUMNS:
        body = f"{function}({to}, {from_}, x1, params.count,\n    params.inner, params.inner);"
        return (scatter.launch("rows", body, 1, (0, 1), group_size=(1, 1, 1)),)
    body = (
        f"{function}({to} + at.x, {from_} + at.x * {step},\n    x1, params.count, 1, params.inner);"
    )
    return (scatter.launch("columns", body, scatter.inner, (0, 1)),)


def _sorted(scatter: _Scatter) -> tuple[LibraryLaunch, ...]:
    """The thread of the first of equal indices combines the new elements of all of them."""
    type_ = scatter.type_
    body = (
        f"numpy::scatter_sorted<{scatter.op}, {scatter.step}>((device {type_} *)out,\n"
        f"    (device const {type_} *)x0, x1, x2, params.count, params.inner, at.x);"
    )
    threads = scatter.new_rows * scatter.inner
    return (scatter.launch("sorted", body, threads, (0, 1, 2), writes=(3,)),)


def _last(scatter: _Scatter) -> tuple[LibraryLaunch, ...]:
    """The last new row of each index is found first; then its threads store it."""
    mark = (
        "atomic_fetch_max_explicit((device atomic_uint *)out + x0[at.x], at.x + 1,\n"
        "    memory_order_relaxed);"
    )
    write = (
        "const uint row = at.x / params.inner;\n"
        "if (x2[x1[row]] == row + 1) {\n"
        "  const ulong i = ulong(x1[row]) * params.inner + at.x % params.inner;\n"
        f"  out[i] = {scatter.element};\n"
        "}"
    )
    return (
        scatter.launch("clear", "out[at.x] = 0;", scatter.rows, (), writes=(3,)),
        scatter.launch("mark", mark, scatter.new_rows, (1,), writes=(3,)),
        scatter.launch("last", write, scatter.new_rows * scatter.inner, (0, 1, 3)),
    )


def _atomically(scatter: _Scatter) -> tuple[LibraryLaunch, ...]:
    """Each new element has a thread."""
    body = (
        "const ulong row = x1[at.x / params.inner];\n"
        "const ulong i = row * params.inner + at.x % params.inner;\n"
        f"const {scatter.type_} x = {scatter.element};\n"
    ) + _atomic_update(scatter.dtype, scatter.function, scatter.type_, scatter.op)
    return (scatter.launch("atomically", body, scatter.new_rows * scatter.inner, (0, 1)),)


_LAUNCHES = {IN_ORDER: _in_order, LAST: _last, ATOMIC: _atomically, SORTED: _sorted}


def _atomic_update(dtype: DType, function: str, type_: str, op: str) -> str:
    """The statement that combines the element `i` with `x`."""
    if function == "add":
        if dtype in (float32, int32, uint32):
            return f"numpy::add_atomically((device {type_} *)out + i, x);"
        if dtype == complex64:
            return (
                "numpy::add_atomically((device float *)out + 2 * i, x.re);\n"
                "numpy::add_atomically((device float *)out + 2 * i + 1, x.im);"
            )
        if dtype.itemsize == 8:
            return "numpy::add_words((device uint *)out + 2 * i, ulong(x));"
    return f"numpy::exchange<{op}>((device {type_} *)out, i, x);"


def _on_host(base: Node, new: Node, *more: Any) -> Node:
    *indices, function = more
    result = base.dtype, base.shape
    return host_call(_scatter, [base, new, *indices], (function,), result)[0]


def _scatter(old: np.ndarray, new: np.ndarray, *more: Any) -> np.ndarray:
    *indices, function = more
    result = old.copy()
    if function == "set":
        result[tuple(indices)] = new
    else:
        getattr(np, op(function).reference or function).at(result, tuple(indices), new)
    return result


implement("scatter", Implementation(_by_kernels, _is_supported), _on_host, is_structural=True)
# The method on SIMT devices depends on a setting: plans of another one are not found any more.
settings.observe("deterministic", lambda _: plans.clear())
