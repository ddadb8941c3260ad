"""Accesses stay within the objects they are made for, on both engines."""

import numpy as np
import pytest
from bounded_kernels import ELEMENTS, MARGIN, random_kernel

import metalloid as mtl

ENGINES = ("simd", "reference")
_HEAD = "#include <metal_stdlib>\n#include <metal_tensor>\nusing namespace metal;\n"
_CANARY = 0x5CA1AB1E


@pytest.fixture(params=ENGINES)
def engine(request):
    with mtl.config.scope(cpu_engine=request.param, device="cpu"):
        yield request.param


def guarded(values, dtype=np.int32):
    """A view of values, or of that many zeros, in the middle of an array, and the array."""
    values = np.zeros(values, dtype) if isinstance(values, int) else values
    memory = np.full(len(values) + 2 * MARGIN, _CANARY, np.int32).view(values.dtype)
    view = memory[MARGIN : MARGIN + len(values)]
    view[:] = values
    return view, memory


def is_intact(memory):
    ends = np.concatenate([memory[:MARGIN], memory[-MARGIN:]])
    return bool((ends.view(np.int32) == _CANARY).all())


def check_that_the_next_launch_is_right():
    y = np.zeros(100, np.float32)
    kernel("fill")(y, threads=100)
    assert (y == 1).all()


def check_random_kernel(seed, launch=0):
    """The launch fails exactly if an access is outside, and nothing outside is written.

    Returns whether it fails.
    """
    kernel = random_kernel(seed, launch)
    accesses = [access for i in range(kernel.threads) for access in kernel.accesses(i)]
    is_outside = any(not 0 <= index < ELEMENTS for _, index in accesses)
    f = mtl.library(kernel.text).f
    (y, x, data, sums), around = zip(
        *map(guarded, (ELEMENTS, ELEMENTS, kernel.data, kernel.threads)), strict=True
    )
    for _ in range(2):  # the general path and the fast path
        fault = None
        try:
            f(y, x, data, sums, kernel.n, threads=kernel.threads, group_size=kernel.group)
        except mtl.KernelFault as error:
            fault = error
        assert (fault is not None) == is_outside, f"seed {seed}: {fault}\n{kernel.text}"
        assert all(map(is_intact, around))
    if is_outside:
        check_that_the_next_launch_is_right()
    else:
        expected = np.zeros(ELEMENTS, np.int32)
        expected[[index for name, index in accesses if name == "y"]] = 1
        np.testing.assert_array_equal(y, expected)
    return is_outside


@pytest.mark.parametrize("seed", [0, 1, 2, 2000])
@pytest.mark.sample(2)
def test_random_kernels(engine, seed):
    check_random_kernel(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 50))
def test_many_random_kernels(engine, first):
    """2,000 kernels with 5 launches each."""
    for seed in range(first, first + 50):
        for launch in range(5):
            check_random_kernel(seed, launch)


_TEXT = """kernel void fill(device float *y, uint i [[thread_position_in_grid]]) {
  y[i] = 1;
}
kernel void scatter(device float *y, device const int *at, uint i [[thread_position_in_grid]]) {
  y[at[i]] = 1;
}
kernel void shared(device float *y, uint l [[thread_position_in_threadgroup]]) {
  threadgroup float t[4];
  t[l] = 3;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[l] = t[l ^ 1];
}
kernel void own(device int *y, constant int &n, uint i [[thread_position_in_grid]]) {
  int t[8];
  for (int j = 0; j < n; j++) t[j] = j;
  y[i] = t[i & 3];
}
kernel void given(device float *y, threadgroup float *t, uint l [[thread_index_in_threadgroup]]) {
  t[l] = l;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[l] = t[l];
}
kernel void move(device float4 *y, device const float4 *x, constant uint &n,
                 uint i [[thread_position_in_grid]]) {
  if (i < n) y[i] = x[i + 1];
}
constant int table[4] = {1, 2, 3, 4};
kernel void look(device int *y, device const int *at, uint i [[thread_position_in_grid]]) {
  y[i] = table[at[i]];
}
kernel void add(device atomic_int *y, device const int *at, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&y[at[i]], 1, memory_order_relaxed);
}
kernel void either(device int *y, device const int *x, device const int *z, constant int &n,
                   uint i [[thread_position_in_grid]]) {
  device const int *p = x;
  for (int j = 0; j < n; j++) p += 8;
  y[i] = p[i];
}
kernel void select(device int *y, device int *x, constant int &n,
                   uint i [[thread_position_in_grid]]) {
  device int *p = i & 1 ? x : y;
  for (int j = 0; j < n; j++) p += 8;
  p[i] = 7;
}
struct Inner { device float *p[2]; };
struct Outer { int n; device float *p; Inner inner[2]; };
kernel void members(constant Outer &s, uint i [[thread_position_in_grid]]) { s.p[i + s.n] = 1; }
kernel void nested(constant Outer &s, uint i [[thread_position_in_grid]]) {
  s.inner[1].p[1][i + s.n] = 1;
}
kernel void dense(tensor<device float, dextents<int, 2>> t, constant int &n,
                  uint2 i [[thread_position_in_grid]]) { t[i.x + n, i.y] = 1; }
kernel void edge(device float *y, device const float *x, constant int2 &size,
                 uint2 at [[thread_position_in_grid]]) {
  float sums[4];
  for (int r = 0; r < 4; r++) sums[r] = 1 + r;
  for (int r = 0; r < 4; r++) {
    float read = 0;
    if (int(at.x) < size.x) read = x[(at.y * 4 + r) * size.x + at.x];
    sums[r] += 2 * read;
  }
  for (int r = 0; r < 4; r++)
    if (int(at.y * 4 + r) < size.y && int(at.x) < size.x)
      y[(at.y * 4 + r) * size.x + at.x] = sums[r];
}
kernel void odd(device float *y, device const float *x, device const int *at,
                uint i [[thread_position_in_grid]]) {
  float read = x[at[i]];
  y[i] = 1;
  if (i & 1) y[i] = read + 2;
}
kernel void vectors(device float4 *y, device const float4 *x, device const int *at,
                    uint i [[thread_position_in_grid]]) {
  float4 read = x[at[i]];
  y[i] = 1;
  if (i & 1) y[i] = read + 2;
}
kernel void scaled(device float *y, device const uchar *x, device const int *at,
                   uint i [[thread_position_in_grid]]) {
  uchar bits = x[at[i]];
  float scale = as_type<float>(bits == 0 ? 0x400000u : uint(bits) << 23);
  y[i] = 1;
  if (i & 1) y[i] = scale + 3;
}
kernel void branch(device float *y, device const float *x, device const int *at,
                   uint i [[thread_position_in_grid]]) {
  float read = x[at[i]];
  if (read > 0) y[i] = 1;
}
"""


def kernel(name):
    return mtl.library(_HEAD + _TEXT)[name]


def fault_of(launch):
    with pytest.raises(mtl.KernelFault) as raised:
        launch()
    return str(raised.value)


def test_message(engine):
    y, around = guarded(100, np.float32)
    text = fault_of(lambda: kernel("fill")(y, threads=101, group_size=101))
    assert text == (
        "[fill] program_source:5: write to index 100 of 'y', which has 100 elements, "
        "in thread (100, 0, 0) of threadgroup (0, 0, 0).\n"
        "      y[i] = 1;\n"
        "           ^"
    )
    assert is_intact(around)


def test_a_message_counts_failing_lanes():
    with mtl.config.scope(cpu_engine="simd", device="cpu"):
        y, at = np.zeros(100, np.float32), np.arange(64, dtype=np.int32)
        at[[40, 44, 47]] = 100, -1, 1000  # lanes of one vector of any width
        text = fault_of(lambda: kernel("scatter")(y, at, threads=64, group_size=64))
    assert "index 100 of 'y', which has 100 elements, in thread (40, 0, 0) of " in text
    assert "threadgroup (0, 0, 0), and in at least 2 more threads.\n" in text


#: Name, arguments, threads, and what the message says; no message without.
CASES = {
    "a view": ("fill", lambda y, one: (y,), 96, ""),
    "past a view": ("fill", lambda y, one: (y,), 97, "write to index 96 of 'y'"),
    "far past it": ("fill", lambda y, one: (y,), 100_000, "write to index"),
    "an index": ("scatter", lambda y, one: (y, one(95)), 96, ""),
    "a wild index": ("scatter", lambda y, one: (y, one(96)), 96, "write to index 96 of 'y'"),
    "a negative index": ("scatter", lambda y, one: (y, one(-1)), 96, "write to index -1 of 'y'"),
    "a short index array": ("scatter", lambda y, one: (y, one(0)[:5]), 96, "of 'at', which has 5"),
    "a threadgroup array": ("shared", lambda y, one: (y,), 4, ""),
    "past it": ("shared", lambda y, one: (y,), 64, "write to index 4 of 't', which has 4"),
    "a private array": ("own", lambda y, one: (y.view(np.int32), 8), 9, ""),
    "past that": ("own", lambda y, one: (y.view(np.int32), 5000), 9, "write to index 8 of 't'"),
    "threadgroup memory": (
        "given", lambda y, one: (y, mtl.threadgroup_memory(128)), 32, ""),
    "past threadgroup memory": (
        "given", lambda y, one: (y, mtl.threadgroup_memory(128)), 33, "index 32 of 't', which has 32"),
    "a guard": ("move", lambda y, one: (y, y.copy(), 23), 100, ""),
    "a wrong guard": ("move", lambda y, one: (y, y.copy(), 24), 100, "read of index 24 of 'x'"),
    "a table": ("look", lambda y, one: (y.view(np.int32), one(3)), 9, ""),
    "past a table": ("look", lambda y, one: (y.view(np.int32), one(4)), 9, "index 4 of 'table'"),
    "an atomic update": ("add", lambda y, one: (y.view(np.int32), one(95)), 9, ""),
    "a wild update": ("add", lambda y, one: (y.view(np.int32), one(96)), 9, "write to index 96"),
    "a pointer that moves": (
        "either", lambda y, one: (y.view(np.int32), one(0), one(0), 11), 8, ""),
    "one that moves too far": (
        "either", lambda y, one: (y.view(np.int32), one(0), one(0), 12), 8, "read of index 96 of 'x'"),
    "one of two arrays": (
        "select", lambda y, one: (y.view(np.int32), one(0), 3), 72, ""),
    "past one of two": (
        "select", lambda y, one: (y.view(np.int32), one(0)[:95], 3), 72, "index 95 of an array, which has 95"),
    "a pointer in a struct": ("members", lambda y, one: (outer(1, y),), 95, ""),
    "past it, in a struct": ("members", lambda y, one: (outer(2, y),), 95, "index 96 of 's.p', which has 96"),
    "a null pointer": ("members", lambda y, one: (outer(0, None),), 1, "index 0 of 's.p', which has 0"),
    "a pointer in nested structs": ("nested", lambda y, one: (outer(1, None, y),), 95, ""),
    "past that, in nested structs": (
        "nested", lambda y, one: (outer(2, None, y),), 95, "index 96 of 's.inner[1].p[1]', which has 96"),
    "a tensor": ("dense", lambda y, one: (y.reshape(8, 12), 0), (12, 8), ""),
    "past a tensor": ("dense", lambda y, one: (y.reshape(8, 12), 1), (12, 8), "index 96 of 't', which has 96"),
    "a reversed tensor": ("dense", lambda y, one: (y.reshape(8, 12)[::-1, ::-1], 0), (12, 8), ""),
    "before a reversed tensor": (
        "dense", lambda y, one: (y.reshape(8, 12)[::-1, ::-1], 1), (12, 8), "index -1 of 't', which has 96"),
}  # fmt: skip


def outer(n, p, q=None):
    return {"n": n, "p": p, "inner": [{"p": [None, None]}, {"p": [None, q]}]}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(4)
def test_objects(engine, case):
    name, arguments, threads, message = CASES[case]
    y, around = guarded(ELEMENTS, np.float32)
    given = arguments(y, lambda number: np.full(ELEMENTS, number, np.int32))
    launch = kernel(name)
    size = threads if name in ("shared", "given") else None
    for _ in range(2):
        if message:
            assert message in fault_of(
                lambda: launch(*given, threads=threads, group_size=size, wait=True)
            )
        else:
            launch(*given, threads=threads, group_size=size, wait=True)
        assert is_intact(around)
    check_that_the_next_launch_is_right()


def test_reads_past_the_last_row_that_are_not_stored(engine):
    """As in `apply_epilogue_safe` of MLX (steel/gemm/mma.h)."""
    rows, columns = 7, 10
    (y, around), x = guarded(70, np.float32), np.arange(70, dtype=np.float32)
    for _ in range(2):
        kernel("edge")(y, x, (columns, rows), threads=(16, 2), group_size=(16, 2))
        expected = 2 * x.reshape(rows, columns) + (np.arange(rows)[:, None] % 4 + 1)
        np.testing.assert_array_equal(y.reshape(rows, columns), expected)
    text = fault_of(lambda: kernel("edge")(y, x[:69], (columns, rows), threads=(16, 2)))
    assert "program_source:63: read of index 69 of 'x', which has 69 elements, in thread" in text
    assert is_intact(around)


def test_a_read_counts_where_its_value_is_used(engine):
    (y, around), x = guarded(ELEMENTS, np.float32), np.ones(ELEMENTS, np.float32)
    at = np.zeros(ELEMENTS, np.int32)
    at[::2] = 10**9
    kernel("odd")(y, x, at, threads=ELEMENTS)
    np.testing.assert_array_equal(y, np.where(np.arange(ELEMENTS) % 2, 3, 1))
    bits = np.array([0, 128], np.uint8)
    kernel("scaled")(y, bits, at, threads=ELEMENTS)
    np.testing.assert_array_equal(y, np.where(np.arange(ELEMENTS) % 2, 3, 1))
    kernel("scaled")(y, bits, np.where(at, at, 1), threads=ELEMENTS)
    np.testing.assert_array_equal(y, np.where(np.arange(ELEMENTS) % 2, 5, 1))
    kernel("odd")(y, x, at, threads=ELEMENTS)
    wide = np.zeros((ELEMENTS, 4), np.float32)
    kernel("vectors")(wide, np.ones_like(wide), at, threads=ELEMENTS)
    np.testing.assert_array_equal(wide, np.repeat(y, 4).reshape(wide.shape))
    assert "of index 1000000000 of 'x'" in fault_of(
        lambda: kernel("branch")(y, x, at, threads=ELEMENTS)
    )
    at[5] = -3
    assert "read of index -3 of 'x'" in fault_of(lambda: kernel("odd")(y, x, at, threads=ELEMENTS))
    assert is_intact(around)


def test_adjacent_buffers(engine):
    y, adjacent = mtl.Buffer(np.zeros(1000, np.float32)), mtl.Buffer(np.zeros(1000, np.float32))
    event = kernel("fill")(y, threads=4096, wait=False)
    assert "which has 1000 elements" in fault_of(event.wait)
    assert not np.asarray(adjacent).any()


def test_a_proof_waits_for_what_it_reads(engine):
    """A queued launch changes the number that a guard of the next one compares with."""
    n = mtl.Buffer(np.array([23], np.uint32))
    set_n = mtl.library(
        "kernel void set(device uint *n, device uint *spin, constant uint &to) {"
        " for (uint i = 0; i < 30000000; i++) spin[0] = spin[0] * 7 + i; n[0] = to; }"
    )["set"]
    move, x = kernel("move"), mtl.Buffer(np.zeros((24, 4), np.float32))
    out = mtl.Buffer(np.zeros((24, 4), np.float32))
    move(out, x, n, threads=100)
    set_n(n, mtl.Buffer(np.zeros(1, np.uint32)), 24, threads=1, wait=False)
    event = move(out, x, n, threads=100, wait=False)
    assert "read of index 24 of 'x'" in fault_of(event.wait)


def test_settings():
    with pytest.raises(mtl.ArgumentError, match=r"bounds must be one of 'checked', 'unchecked'"):
        mtl.library(_TEXT, bounds="on")
    with pytest.raises(ValueError, match=r"bounds='on' is not a valid value"):
        mtl.config.bounds = "on"
    with mtl.config.scope(device="cpu"):
        y, around = guarded(4, np.float32)
        assert mtl.library(_HEAD + _TEXT, bounds="unchecked").fill(y, threads=5)
        assert not is_intact(around)


def next_element(bounds):
    """Calls of generated kernels that read the elements after those of an array."""
    elementwise = mtl.ElementwiseKernel("raw float x", "float y", "y = x[i + 1]", bounds=bounds)
    reduction = mtl.ReductionKernel(
        "raw float x, float z", "float y", "x[i + 1] + z", "a + b", "y = a", "0", bounds=bounds
    )
    scan = mtl.ScanKernel(
        "raw float x, float z", "float y", "x[i + 1] + z", "a + b", "0", bounds=bounds
    )
    body = mtl.metal_kernel(
        "body", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i + 1];", bounds=bounds
    )
    return {
        "elementwise": lambda x: elementwise(x, size=9),
        "reduction": lambda x: reduction(x, np.zeros(9, np.float32)),
        "scan": lambda x: scan(x, np.zeros(9, np.float32)),
        "body": lambda x: body(
            inputs=[x], grid=9, output_shapes=[(9,)], output_dtypes=[np.float32]
        ),
    }


@pytest.mark.parametrize("how", ["elementwise", "reduction", "scan", "body"])
@pytest.mark.sample(1)
def test_generated_kernels(how):
    with mtl.config.scope(device="cpu"):
        x, _ = guarded(9, np.float32)
        assert "index 9 of 'x', which has 9 elements" in fault_of(
            lambda: next_element("checked")[how](x)
        )
        next_element("unchecked")[how](x)
        with mtl.config.scope(bounds="unchecked"):
            assert "index 9 of 'x'" in fault_of(lambda: next_element("checked")[how](x))
    with pytest.raises(mtl.ArgumentError, match="bounds must be one of 'checked', 'unchecked'"):
        next_element("on")
