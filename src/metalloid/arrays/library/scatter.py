"""Scatters by the functions of `scatter.metal`, which update a copy of their first operand.

On a few cores, a thread takes all new elements in order, or those of a column. On SIMT devices a
thread takes one of them; atomic operations combine those with the same index. Where there are none,
or their order matters, indices are sorted first.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from metalloid.arrays.execution.calls import host_call
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
#: Narrower rows do not fill the lanes of a core.
_FEW_COLUMNS = 16
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
    how = _method(base.dtype, function, base.device.traits.is_simt)
    operands = [base, values, row]
    if how == SORTED:
        (order,) = bind("argsort", [row], (0, False, settings.sorting), (int64, row.shape))
        operands[2:] = [gathered(row, [0], [order]), order]
    size = rows, row.size, base.size // rows
    call = _call(how, base.dtype, function, size, is_constant)
    return library_call(call, operands, base.dtype, base.shape)


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


@functools.lru_cache(maxsize=1024)
def _call(how: str, dtype: DType, function: str, size: Ints,
          is_constant: bool) -> LibraryCall:  # fmt: skip
    """The launches of a scatter.

    The operands after the array are new elements, the index of each of their rows, and for `SORTED`
    the order that sorts these, which are sorted then.

    Parameters
    ----------
    size : (int, int, int)
        Rows of the array, new rows, and the elements of a row.
    is_constant : bool
        Whether there is one new element for all.
    """
    rows, count, inner = size
    type_ = "uchar" if dtype == bool_ else msl_name(dtype)
    combined = "numpy::" + (_OPS_OF_BOOLS if dtype == bool_ else _OPS)[function]
    files = ("complex", "complex_functions") if kind_of(dtype) == "c" else ()
    numbers = ("count", count), ("inner", inner)
    step = int(not is_constant)  # a literal: elements of neighbouring threads are contiguous
    element = "x0[0]" if is_constant else "x0[at.x]"
    to, from_ = f"(device {type_} *)out", f"(device const {type_} *)x0"
    out = 3 if how == SORTED else 2

    def launch(stage: str, body: str, threads: int, reads: Ints, writes: Ints = (out,),
               group_size: Size | None = None) -> LibraryLaunch:  # fmt: skip
        return LibraryLaunch(
            name=f"scatter_{function}_{stage}",
            body=body,
            files=(*files, "scatter"),
            reads=reads,
            writes=writes,
            numbers=numbers,
            threads=(threads, 1, 1),
            group_size=group_size,
        )

    if how == IN_ORDER and inner < _FEW_COLUMNS:
        body = (
            f"numpy::scatter_in_order<{combined}, {step}>({to}, {from_}, x1, params.count,\n"
            "    params.inner, params.inner);"
        )
        launches = [launch("rows", body, 1, (0, 1), group_size=(1, 1, 1))]
    elif how == IN_ORDER:
        body = (
            f"numpy::scatter_in_order<{combined}, {step}>({to} + at.x, {from_} + at.x * {step},\n"
            "    x1, params.count, 1, params.inner);"
        )
        launches = [launch("columns", body, inner, (0, 1))]
    elif how == SORTED:
        body = (
            f"numpy::scatter_sorted<{combined}, {step}>({to}, {from_}, x1, x2, params.count,\n"
            "    params.inner, at.x);"
        )
        launches = [launch("sorted", body, count * inner, (0, 1, 2))]
    elif how == LAST:
        mark = (
            "atomic_fetch_max_explicit((device atomic_uint *)out + x0[at.x], at.x + 1,\n"
            "    memory_order_relaxed);"
        )
        write = (
            "const uint row = at.x / params.inner;\n"
            "if (x2[x1[row]] == row + 1) {\n"
            "  const ulong i = ulong(x1[row]) * params.inner + at.x % params.inner;\n"
            f"  out[i] = {element};\n"
            "}"
        )
        launches = [
            launch("clear", "out[at.x] = 0;", rows, (), (3,)),
            launch("mark", mark, count, (1,), (3,)),
            launch("last", write, count * inner, (0, 1, 3)),
        ]
    else:
        body = (
            "const ulong row = x1[at.x / params.inner];\n"
            "const ulong i = row * params.inner + at.x % params.inner;\n"
            f"const {type_} x = {element};\n"
        ) + _atomic_update(dtype, function, type_, combined)
        launches = [launch("atomically", body, count * inner, (0, 1))]
    temporaries = ((uint32, (rows,)),) if how == LAST else ()
    return LibraryCall(tuple(launches), temporaries, is_update=True)


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


implement("scatter", Implementation(_by_kernels, _is_supported), _on_host)
