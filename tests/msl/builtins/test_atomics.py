"""Atomic functions on device and threadgroup memory, with many threads on one object.

Whatever the order in which threads came, an operation f on one object leaves a trace: the values
that the threads found and the last value are, as a multiset, the first value and the values that
they left, f(found, operand). That holds if and only if the operations form chains without a lost
update, so it is checked for every operation and type, bit for bit.
"""

from collections import Counter

import numpy as np
import pytest
from msl_types import DTYPES
from sheets import HEADER

import metalloid as mtl

ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
INTEGER_OPERATIONS = (*ARITHMETIC, "exchange", "replace")
OPERATIONS = {
    "int": INTEGER_OPERATIONS, "uint": INTEGER_OPERATIONS, "long": INTEGER_OPERATIONS, "ulong": INTEGER_OPERATIONS,
    "float": ("add", "sub", "exchange", "replace"),
    "bool": ("exchange", "replace"),
}  # fmt: skip
#: A read-modify-write operation of one's own: found becomes found * 3 + operand.
REPLACE = """
template <typename P, typename T> T replace(P object, T operand) {
    T found = atomic_load_explicit(object, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        object, &found, T(found * T(3) + operand), memory_order_relaxed, memory_order_relaxed)) {}
    return found;
}
"""


def left(operation, old, operands):
    """The value after an operation on an old one."""
    if operation == "exchange":
        return operands
    if operation != "replace":
        return ARITHMETIC[operation](old, operands)
    if old.dtype == bool:
        return (old.astype(int) * 3 + operands) != 0
    return old * old.dtype.type(3) + operands


def call(operation, object_, operand):
    if operation == "replace":
        return f"replace({object_}, {operand})"
    name = (
        "atomic_exchange_explicit"
        if operation == "exchange"
        else f"atomic_fetch_{operation}_explicit"
    )
    return f"{name}({object_}, {operand}, memory_order_relaxed)"


def library(type_):
    """A kernel for each space; thread i uses operand x[i] and stores what each operation found."""
    operations = OPERATIONS[type_]
    on_device = "".join(
        f"    found[{k} * n + i] = {call(op, f'objects + {k}', 'x[i]')};\n"
        for k, op in enumerate(operations)
    )
    in_group = "".join(
        f"    found[{k} * n + i] = {call(op, f'&objects[{k}]', 'x[i]')};\n"
        for k, op in enumerate(operations)
    )
    count = len(operations)
    return mtl.library(
        f"""{HEADER}{REPLACE}
        kernel void on_device(device atomic<{type_}>* objects, device {type_}* found, device const {type_}* x,
                              constant uint& n, uint i [[thread_position_in_grid]]) {{
        {on_device} }}
        kernel void in_threadgroup(device const {type_}* first, device {type_}* last, device {type_}* found,
                              device const {type_}* x, constant uint& n, uint i [[thread_position_in_grid]],
                              uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
            threadgroup atomic<{type_}> objects[{count}];
            if (t < {count}) atomic_store_explicit(&objects[t], first[t], memory_order_relaxed);
            threadgroup_barrier(mem_flags::mem_threadgroup);
        {in_group}
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t < {count}) last[{count} * g + t] = atomic_load_explicit(&objects[t], memory_order_relaxed);
        }}"""
    )


def operands_of(type_, size, rng):
    dtype = DTYPES[type_]
    if type_ == "float":
        return rng.normal(size=size).astype(dtype)
    if type_ == "bool":
        return rng.random(size) < 0.5
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, size, dtype, endpoint=True)


def bits(values):
    """Values as hashable bits."""
    return values.view(f"u{values.itemsize}").tolist()


def assert_no_update_is_lost(operation, first, last, old, operands):
    with np.errstate(over="ignore"):
        after = left(operation, old, operands)
    assert Counter(bits(old)) + Counter(bits(last[None])) == Counter(bits(after)) + Counter(
        bits(first[None])
    )


@pytest.mark.parametrize("type_", OPERATIONS)
@pytest.mark.sample(2)
def test_on_device_memory(type_, rng):
    n, count = 8192, len(OPERATIONS[type_])
    x, first = operands_of(type_, n, rng), operands_of(type_, count, rng)
    objects, old = first.copy(), np.zeros((count, n), DTYPES[type_])
    library(type_).on_device(objects, old, x, n, threads=n, group_size=64)
    for k, operation in enumerate(OPERATIONS[type_]):
        assert_no_update_is_lost(operation, first[k], objects[k], old[k], x)


@pytest.mark.parametrize("type_", OPERATIONS)
@pytest.mark.sample(2)
def test_on_threadgroup_memory(type_, rng):
    groups, size, count = 12, 96, len(OPERATIONS[type_])
    n = groups * size
    x, first = operands_of(type_, n, rng), operands_of(type_, count, rng)
    last, old = (
        np.zeros((groups, count), DTYPES[type_]),
        np.zeros((count, groups, size), DTYPES[type_]),
    )
    library(type_).in_threadgroup(first, last, old, x, n, threads=n, group_size=size)
    for k, operation in enumerate(OPERATIONS[type_]):
        for g in range(groups):
            operands = x[g * size : (g + 1) * size]
            assert_no_update_is_lost(operation, first[k], last[g, k], old[k, g], operands)


def test_tickets_are_a_permutation():
    lib = mtl.library(
        f"{HEADER}kernel void draw(device atomic_uint& next, device uint* ticket, uint i [[thread_position_in_grid]])"
        " { ticket[i] = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed); }"
    )
    next_, ticket = np.zeros(1, np.uint32), np.zeros(100_000, np.uint32)
    lib.draw(next_, ticket, threads=ticket.size)
    assert next_[0] == ticket.size
    assert (np.sort(ticket) == np.arange(ticket.size)).all()


NAMES = {
    "int": "atomic_int",
    "uint": "atomic_uint",
    "float": "atomic_float",
    "bool": "atomic_bool",
    "ulong": "atomic_ulong",
}


@pytest.mark.parametrize("type_", NAMES)
@pytest.mark.sample(1)
def test_load_store_and_compare_exchange_of_ones_own(type_, rng):
    """A failed exchange changes nothing and says what is there."""
    lib = mtl.library(
        f"""{HEADER}
        kernel void f(device {NAMES[type_]}* a, device {type_}* y, device uchar* swapped, device const {type_}* x,
                      device const {type_}* z, uint i [[thread_position_in_grid]]) {{
            y[3 * i] = atomic_load_explicit(&a[i], memory_order_relaxed);
            atomic_store_explicit(&a[i], x[i], memory_order_relaxed);
            {type_} expected = z[i];  // equal to x[i] in half of the threads
            bool done = atomic_compare_exchange_weak_explicit(&a[i], &expected, y[3 * i], memory_order_relaxed, memory_order_relaxed);
            swapped[i] = done;
            y[3 * i + 1] = expected;
            y[3 * i + 2] = atomic_load_explicit(&a[i], memory_order_relaxed);
        }}"""
    )
    n = 1000
    a, x, z = (operands_of(type_, n, rng) for _ in range(3))
    z[::2] = x[::2]
    same = z == x
    y, swapped, objects = np.zeros((n, 3), DTYPES[type_]), np.full(n, 7, np.uint8), a.copy()
    lib.f(objects, y, swapped, x, z, threads=n)
    np.testing.assert_array_equal(y[:, 0], a)
    assert (swapped == same).all()
    np.testing.assert_array_equal(y[:, 1], x)
    np.testing.assert_array_equal(y[:, 2], np.where(same, a, x))
    np.testing.assert_array_equal(objects, y[:, 2])


@pytest.mark.parametrize("type_", ["ulong", "long"])
def test_updates_without_a_result(type_, rng):
    """atomic_min_explicit and atomic_max_explicit, the functions for 64-bit integers."""
    lib = mtl.library(
        f"""{HEADER}
        kernel void f(device atomic<{type_}>* a, device const {type_}* x, uint i [[thread_position_in_grid]]) {{
            atomic_min_explicit(a, x[i], memory_order_relaxed);
            atomic_max_explicit(a + 1, x[i], memory_order_relaxed);
        }}"""
    )
    x = operands_of(type_, 5000, rng)
    a = np.array([x[0], x[0]])
    lib.f(a, x, threads=x.size)
    assert a.tolist() == [x.min(), x.max()]


def test_sums_of_floats_by_compare_exchange_on_bits(rng):
    """The classic of kernels written before atomic_float: a float in an atomic_uint."""
    lib = mtl.library(
        f"""{HEADER}
        kernel void sum(device atomic_uint* total, device const float* x, uint i [[thread_position_in_grid]]) {{
            uint found = atomic_load_explicit(total, memory_order_relaxed);
            while (!atomic_compare_exchange_weak_explicit(total, &found, as_type<uint>(as_type<float>(found) + x[i]),
                                                          memory_order_relaxed, memory_order_relaxed));
        }}"""
    )
    x = rng.integers(-1000, 1000, 20_000).astype(np.float32)  # exact in every order
    total = np.zeros(1, np.float32)
    lib.sum(total.view(np.uint32), x, threads=x.size)
    assert total[0] == x.sum(dtype=np.float64)


def test_arrays_of_atomics():
    lib = mtl.library(
        f"""{HEADER}
        struct Counts {{ array<atomic_int, 4> of; }};
        kernel void count(device Counts& counts, device array<atomic_uint, 4>* more, uint i [[thread_position_in_grid]],
                          uint t [[thread_index_in_threadgroup]]) {{
            threadgroup array<atomic_int, 4> shared;
            if (t < 4) atomic_store_explicit(&shared[t], 0, memory_order_relaxed);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            atomic_fetch_add_explicit(&shared[i % 3], 1, memory_order_relaxed);
            atomic_fetch_max_explicit(&(*more)[i % 4], i, memory_order_relaxed);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t < 4)
                atomic_fetch_add_explicit(&counts.of[t], atomic_load_explicit(&shared[t], memory_order_relaxed),
                                          memory_order_relaxed);
        }}"""
    )
    counts, more = np.zeros(1, [("of", "4i4")]), np.zeros(4, np.uint32)
    lib.count(counts, more, threads=1000, group_size=64)
    assert counts["of"].tolist() == [[334, 333, 333, 0]]
    assert more.tolist() == [996, 997, 998, 999]


def test_flags_publish_data_between_threads_of_a_group():
    """A fence orders what threads write before and read after an atomic flag."""
    lib = mtl.library(
        f"""{HEADER}
        kernel void chain(device uint* y, uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {{
            threadgroup uint data[64];
            threadgroup atomic_uint ready;
            if (t == 0) atomic_store_explicit(&ready, 0u, memory_order_relaxed);
            data[t] = t * t + g;
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_release, thread_scope_threadgroup);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            atomic_fetch_add_explicit(&ready, 1u, memory_order_relaxed);
            threadgroup_barrier(mem_flags::mem_none);
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acquire, thread_scope_threadgroup);
            y[g * 64 + t] = data[63 - t] * (atomic_load_explicit(&ready, memory_order_relaxed) == 64);
        }}"""
    )
    y = np.zeros((20, 64), np.uint32)
    lib.chain(y, threads=y.size, group_size=64)
    np.testing.assert_array_equal(y, (63 - np.arange(64)) ** 2 + np.arange(20)[:, None])
