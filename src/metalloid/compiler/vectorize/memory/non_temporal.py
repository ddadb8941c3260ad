"""Non-temporal stores, for launches that write more than the caches have room for.

A store to a cache line first reads the line from memory. If all of it is overwritten and not read
soon, that read is a third of the traffic of a kernel that reads one array and writes another.
Kernels that compute longer than that are faster with ordinary full-width stores.

Arrays that are read, other launches and other cores share the caches. With 32 MB of cache, the sum
of two arrays of 8 MB takes 0.20 ms instead of 0.31 (of 4 MB 0.10 instead of 0.12), while ones of
8 MB take 0.19 instead of 0.09.
"""

from __future__ import annotations

import math
from collections import Counter

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.permute import cut

#: What x86 stores so at least, and the alignment that this takes; arrays of NumPy's have it.
_BYTES = 16
#: A cache line: the processor waits for the rest of one that is stored in pieces.
_LINE = 64
#: Of kernels that also read arrays, results that take this share of a cache leave it before they
#: are read.
_SHARE = 5
#: Instructions before a store of floats: exp has 26, a stencil 43, a power 71. A number of them
#: compute indices, once for all lanes; the second number is the limit for the rest, for each byte.
_FOR_INDICES, _MUCH = 24, 8
_ORDERING = {"atomicrmw", "cmpxchg", "fence", "copy", "fill"}


def streamable(function: Function, graph: Graph) -> tuple[set[Instruction], int]:
    """Stores to buffers that are only written, once by each thread, and their need of cache.

    A launch whose threads need more bytes than the largest cache has should use them.
    None are if threads could tell each other what they have stored: what goes past the caches is
    seen late. Of several blocks the one that stores most counts: lanes may run but one of them.
    """
    computed_by = {one.result: one for one in function.instructions() if one.result}
    stores: list[tuple[str, str, Instruction]] = []
    loads: list[Instruction] = []
    read: set[str] = set()
    for name, block in function.blocks.items():
        for one in block.body:
            is_access = one.op in ("load", "store")
            if one.op in _ORDERING or (is_access and one.ordering):
                return set(), 0
            if not is_access:
                continue
            base = underlying_object(one.operands[-1], computed_by)
            if base is None:
                return set(), 0
            inst = computed_by.get(base)
            if one.op == "load" and not one.reads_the_same:
                loads.append(one)
            if one.op == "load" or graph.loop_of[name] or inst is None or inst.op != "load":
                read.add(base)
            else:
                stores.append((base, name, one))
    bytes_of = Counter[str]()
    for base, name, store in stores:
        bytes_of[name] += store.operands[0].type.size * (base not in read)
    work = _work(function, graph)
    cheap = {name for name, size in bytes_of.items() if work[name] < _FOR_INDICES + _MUCH * size}
    eligible = {store for base, name, store in stores if base not in read and name in cheap}
    stored_by = _parameters_of([store.operands[1] for store in eligible], computed_by)
    # A row or a column that is repeated is in the caches.
    reads = any(_parameters_of([one.operands[0]], computed_by) >= stored_by for one in loads)
    return eligible, max((bytes_of[name] for name in cheap), default=0) * (_SHARE if reads else 1)


def _parameters_of(values: list[Value], computed_by: dict[str, Instruction]) -> set[str]:
    """The positions in the grid that values depend on, and other parameters of the function."""
    names: set[str] = set()
    walk = [*values]
    for value in walk:  # grows while it is traversed
        inst = computed_by.get(value.name)
        if value.is_constant or value.name in names:
            continue
        names.add(value.name)
        if inst is not None and inst.op != "load":
            walk.extend(inst.operands)
    return {name for name in names if name not in computed_by}


def _work(function: Function, graph: Graph) -> dict[str, float]:
    """Instructions that run in every path to a block; infinite if there are loops among them."""
    work: dict[str, float] = {}
    for name in graph.order:  # dominators first
        own = math.inf if graph.loop_of[name] else len(list(function.blocks[name].instructions()))
        work[name] = own if name == graph.entry else own + work[graph.dominator[name]]
    return work


def store(builder: Builder, vector: str, total: int, type: Type, address: str, align: int) -> None:
    """Store so many elements side by side past the caches, if they are aligned."""
    stored = builder.fresh_label("stored")
    power_of_two = total * type.size & -(total * type.size)
    widths = {min(power_of_two, _LINE), _BYTES} if power_of_two >= _BYTES else set()
    for alignment in sorted(widths, reverse=True):
        past, other = builder.fresh_label("past"), builder.fresh_label("through")
        number = builder.new(f"ptrtoint ptr {address} to i64")
        rest = builder.new(f"and i64 {number}, {alignment - 1}")
        is_aligned = builder.new(f"icmp eq i64 {rest}, 0")
        builder.cond_br(is_aligned, past, other)
        builder.label(past)
        lanes = alignment // type.size
        for index, chunk in enumerate(cut(builder, vector, total, lanes, type)):
            there = builder.new(f"getelementptr i8, ptr {address}, i64 {index * alignment}")
            hint = f"align {alignment}, !nontemporal !{{i32 1}}"
            builder.emit(f"store <{lanes} x {type}> {chunk}, ptr {there}, {hint}")
        builder.br(stored)
        builder.label(other)
    builder.emit(f"store <{total} x {type}> {vector}, ptr {address}, align {align}")
    builder.br(stored)
    builder.label(stored)
