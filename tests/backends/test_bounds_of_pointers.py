"""Accesses through pointers that are in memory, and in functions that stay functions.

Neighbours of each array have a canary, which an access outside would change.
"""

import ctypes
import mmap

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import inlining
from metalloid.msl import lower

pytestmark = pytest.mark.needs("the CPU")

COUNT = 8
CANARY = 7.0
ENGINES = ("simd", pytest.param("reference", marks=pytest.mark.slow))
TEXT = """#include <metal_stdlib>
using namespace metal;

struct Scene { device float* lights; uint n; };
struct Table { array<device float*, 4> rows; device float* others[4]; };

kernel void scenes(constant Scene* scenes, constant uint& k, uint t [[thread_position_in_grid]]) {
  scenes[t].lights[k] = scenes[t].n;
}

kernel void rows(constant Table& table, constant uint& k, uint t [[thread_position_in_grid]]) {
  table.rows[t][k] = 3;
  table.others[t][k] = 4;
}

kernel void bindless(array<device float*, 4> rows [[buffer(0)]], constant uint& k [[buffer(4)]],
                     uint t [[thread_position_in_grid]]) {
  rows[t][k] = 3;
}

kernel void in_memory(device Scene* scenes, constant uint& k, uint t [[thread_position_in_grid]]) {
  scenes[t].lights[k] = 3;
}

kernel void one_of_two(constant Table& table, device float* own, constant uint& k,
                       uint t [[thread_position_in_grid]]) {
  device float* p = own[0] > 0 ? table.rows[1] : own;
  p[k + t] = 3;
}

struct Chain { device Scene* scenes; };

kernel void through(device Chain* chain, constant uint& k, uint t [[thread_position_in_grid]]) {
  chain[0].scenes[t].lights[k] = 3;
}

struct Node { device Node* next; uint value; uint unused; };

kernel void walk(device Node* nodes, constant uint& n, constant uint& k, device uint* y,
                 constant Table* table, uint t [[thread_position_in_grid]]) {
  device Node* at = nodes + t;
  for (uint j = 0; j < n; j++) at = at->next;
  y[t] = at[k].value;
}

struct Material { texture2d<float> picture; device float* data; };

kernel void materials(constant Material* all, constant uint& k,
                      uint t [[thread_position_in_grid]]) {
  all[t].data[k] = all[t].picture.read(uint2(0)).x;
}

struct Cursor { thread float* at; uint n; };
kernel void cursors(device float* y, constant uint& k, uint t [[thread_position_in_grid]]) {
  float values[4] = {1, 2, 3, 4};
  Cursor all[2] = {{values, 2}, {values + 1, 3}};
  y[t] = all[k].at[t & 1];
}
"""


def row():
    """An array between canaries, and the memory of both."""
    memory = np.full(3 * COUNT, CANARY, np.float32)
    memory[COUNT : 2 * COUNT] = 0
    return memory[COUNT : 2 * COUNT], memory


def intact(memory):
    return (memory[:COUNT] == CANARY).all() and (memory[2 * COUNT :] == CANARY).all()


@pytest.fixture(params=ENGINES)
def library(request):
    with mtl.config.scope(cpu_engine=request.param):
        yield mtl.library(TEXT, device="cpu")


def address_words(*addresses):
    words = np.zeros(len(addresses), [("lights", "u8"), ("n", "u4"), ("unused", "u4")])
    words["lights"] = addresses
    return mtl.Buffer(words, device="cpu")


def refused(launch, index):
    with pytest.raises(mtl.KernelFault, match=f"write to index {index} of .*, which has 8 el"):
        launch()


def test_elements_of_arrays_of_structs(library):
    rows = [row() for _ in range(3)]

    def launch(k):
        library.scenes([{"lights": own, "n": 5} for own, _ in rows], k, threads=3)

    launch(COUNT - 1)
    assert [own[-1] for own, _ in rows] == [5, 5, 5]
    refused(lambda: launch(COUNT), COUNT)
    assert all(intact(memory) for _, memory in rows)


@pytest.mark.parametrize("name", ["rows", "bindless"])
def test_arrays_of_pointers(library, name):
    rows = [row() for _ in range(8)]
    own = [each for each, _ in rows]
    given = {"rows": own[:4], "others": own[4:]} if name == "rows" else own[:4]

    def launch(k):
        getattr(library, name)(given, k, threads=4)

    launch(COUNT - 1)
    assert [each[-1] for each in own[:4]] == [3] * 4
    refused(lambda: launch(COUNT), COUNT)
    assert all(intact(memory) for _, memory in rows)


@pytest.mark.parametrize("kind", ["view", "overlapping view"])
def test_views_in_one_memory(library, kind):
    """The extent is that of the view, where its base is larger, and where another one begins."""
    memory = np.zeros(4 * COUNT, np.float32)
    rows = [memory[:COUNT], memory[COUNT : 2 * COUNT], memory[: 2 * COUNT], memory[3 * COUNT :]]
    if kind == "overlapping view":
        rows[0] = memory[4:12]
    refused(lambda: library.bindless(rows[:2] + rows[3:] + rows[:1], COUNT, threads=1), COUNT)
    assert not memory.any()


def test_addresses_in_buffers(library):
    first, second = (mtl.Buffer(4 * COUNT, device="cpu") for _ in range(2))
    scenes = address_words(first.address, second.address + 16)
    library.in_memory(scenes, 3, threads=2).wait()
    assert np.asarray(first).view(np.float32)[3] == np.asarray(second).view(np.float32)[7] == 3
    refused(lambda: library.in_memory(scenes, COUNT - 1, threads=2).wait(), COUNT + 3)
    refused(lambda: library.in_memory(scenes, COUNT, threads=1).wait(), COUNT)
    refused(lambda: library.scenes(scenes, COUNT, threads=1).wait(), COUNT)


@pytest.mark.parametrize("has_pointees", [False, True])
def test_lists_in_one_buffer_and_in_two(library, has_pointees):
    """From the nodes of a view one comes to all of it, then to another buffer, then to nothing."""
    memory, other = (mtl.Buffer(16 * COUNT, device="cpu") for _ in range(2))
    nodes = [np.asarray(each).view([("next", "u8"), ("value", "u4"), ("unused", "u4")])
             for each in (memory, other)]  # fmt: skip
    nodes[0]["next"] = memory.address + 16 * ((np.arange(COUNT) + 1) % COUNT)
    nodes[0]["value"], nodes[1]["value"] = np.arange(COUNT), 100 + np.arange(COUNT)
    y = np.zeros(4, np.uint32)
    rows = [np.zeros(COUNT, np.float32)] * 8
    table = [{"rows": rows[:4], "others": rows[4:]}] if has_pointees else mtl.Buffer(64, "cpu")

    def walk(steps, k):
        library.walk(memory, steps, k, y, table, threads=4).wait()
        return y.tolist()

    assert walk(3, 0) == [3, 4, 5, 6]
    assert walk(2, 2) == [4, 5, 6, 7]
    with pytest.raises(mtl.KernelFault, match="read of index 34 of an array, which has 32 el"):
        walk(3, 2 + 3)
    nodes[0]["next"][3] = other.address + 32
    assert walk(1, 0) == [1, 2, 3, 102]
    nodes[1]["next"][2] = memory.address
    assert walk(3, 4) == [7, 106, 4, 5]
    with pytest.raises(mtl.KernelFault, match="which has 32 elements"):
        walk(3, 6)
    nodes[1]["next"][2] = 0
    with pytest.raises(mtl.KernelFault, match="which has 0"):
        walk(3, 0)


def test_a_pointer_in_memory_of_which_nothing_is_known(library):
    """It is looked up, as the object of the memory that it lies in has no limits."""
    target = mtl.Buffer(4 * COUNT, device="cpu")
    scenes = np.zeros(1, [("lights", "u8"), ("n", "u4"), ("unused", "u4")])
    scenes["lights"] = target.address
    chain = mtl.Buffer(np.array([scenes.ctypes.data], np.uint64), device="cpu")
    library.through(chain, COUNT - 1, threads=1).wait()
    refused(lambda: library.through(chain, COUNT, threads=1).wait(), COUNT)


def test_a_pointer_in_memory_below_all_buffers(library):
    """Other addresses are looked up after it."""
    low = mmap_at(1 << 28)
    target = mtl.Buffer(4 * COUNT, device="cpu")
    ctypes.c_uint64.from_address(low).value = target.address
    chain = mtl.Buffer(np.array([low], np.uint64), device="cpu")
    library.through(chain, COUNT - 1, threads=1).wait()
    refused(lambda: library.through(chain, COUNT, threads=1).wait(), COUNT)


def mmap_at(address):
    """The address of a page of memory, near the given one."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    page = libc.mmap(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    assert page < 1 << 32
    return page


def test_a_null_pointer(library):
    with pytest.raises(mtl.KernelFault, match="which has 0 elements"):
        library.in_memory(address_words(0), 0, threads=1).wait()


def test_a_buffer_that_was_freed(library):
    """Its address is no longer in an object; other buffers have their own extents."""
    first = mtl.Buffer(4 * COUNT, device="cpu")
    address = first.address
    del first
    large = mtl.Buffer(1 << 20, device="cpu")
    scenes = address_words(large.address)
    assert address != large.address
    library.in_memory(scenes, (1 << 18) - 1, threads=1).wait()
    with pytest.raises(mtl.KernelFault, match=r"index 262144 of .*, which has 262144 el"):
        library.in_memory(scenes, 1 << 18, threads=1).wait()


@pytest.mark.parametrize("first", [0, 1])
def test_one_of_two_pointers(library, first):
    rows = [row() for _ in range(9)]
    own = [each for each, _ in rows]
    own[8][0] = first
    table = {"rows": own[:4], "others": own[4:8]}
    library.one_of_two(table, own[8], 4, threads=4)
    assert own[1 if first else 8][4:].tolist() == [3] * 4
    refused(lambda: library.one_of_two(table, own[8], 5, threads=4), COUNT)
    assert all(intact(memory) for _, memory in rows)


def test_structs_with_textures(library):
    picture = mtl.Texture(np.full((1, 1), 0.5, np.float32), device="cpu")
    rows = [row() for _ in range(2)]
    given = [{"picture": picture, "data": own} for own, _ in rows]
    library.materials(given, COUNT - 1, threads=2)
    assert [own[-1] for own, _ in rows] == [0.5, 0.5]
    refused(lambda: library.materials(given, COUNT, threads=2), COUNT)
    assert all(intact(memory) for _, memory in rows)


def test_pointers_to_private_memory_are_let_be(library):
    y = np.zeros(4, np.float32)
    library.cursors(y, 1, threads=4)
    assert y.tolist() == [2, 3, 2, 3]


# ---- functions ----------------------------------------------------------------------------------

KERNEL = (
    "kernel void k(device float* x, device float* y, constant uint& n, "
    "uint i [[thread_position_in_grid]]) "
)
#: Functions, a body that calls them, and an `n` with which an access is outside, by one element.
FUNCTIONS = {
    "memory of the device": (
        "void f(device float* p, uint k) { p[k] = 3; }",
        "{ f(x + 2, n - i); f(y, i); }",
        COUNT - 2,
    ),
    "a function that is called by a function": (
        "void g(device float* p, uint k) { p[k] = 3; }\n"
        "void f(device float* p, uint k) { for (uint j = 0; j < k; j++) g(p + 1, j); }",
        "{ if (i == 0) f(x, n); f(y, 3); }",
        COUNT,
    ),
    "a private array": (
        "float f(thread float* a, uint k) { a[k] += 1; return a[k / 2]; }",
        "{ float a[6]; for (uint j = 0; j < 6; j++) a[j] = x[j]; "
        "float b[6]; for (uint j = 0; j < 6; j++) b[j] = y[j]; y[i] = f(a, n - i) + f(b, i % 6); }",
        6,
    ),
    "private arrays of two sizes": (
        "float f(thread float* a, uint k) { a[k] += 1; return a[k / 2]; }",
        "{ float a[4]; for (uint j = 0; j < 4; j++) a[j] = x[j]; "
        "float b[6]; for (uint j = 0; j < 6; j++) b[j] = y[j]; y[i] = f(a, n - i) + f(b, i % 6); }",
        4,
    ),
    "an array of its own": (
        "float f(device float* p, uint k) { float a[5]; for (uint j = 0; j < 5; j++) a[j] = p[j]; "
        "a[k % 7] = 2; return a[1] + a[2]; }",
        "{ y[i] = f(x, n - i) + f(y, 0); }",
        5,
    ),
    "a table": (
        "constant float TABLE[5] = {1, 2, 3, 4, 5};\n"
        "float f(constant float* t, uint k) { return t[k] * 2; }",
        "{ y[i] = f(TABLE, n - i) + f(TABLE, i % 5); }",
        5,
    ),
    "a pointer in memory": (
        "struct Two { device float* p; };\n"
        "void f(device Two* two, uint k) { two->p[k] = 3; }",
        "{ f((device Two*)y, n - i); f((device Two*)y, 0); }",
        COUNT,
    ),
}  # fmt: skip


@pytest.fixture
def nothing_is_inlined(monkeypatch, tmp_path):
    monkeypatch.setattr(lower, "_MAX_INLINED_SIZE", -1)
    never = [text.replace("=300", "=-10000") for text in inlining.SMALL_CALLS]
    monkeypatch.setattr(inlining, "SMALL_CALLS", never)
    with mtl.config.scope(cache_dir=str(tmp_path)):
        yield


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(2)
def test_functions_that_stay_functions(name, engine, nothing_is_inlined):
    functions, body, outside = FUNCTIONS[name]
    with mtl.config.scope(cpu_engine=engine):
        head = "#include <metal_stdlib>\nusing namespace metal;\n"
        kernel = mtl.library(head + functions + "\n" + KERNEL + body, device="cpu").k
    assert kernel.engine.startswith(engine)
    (x, around_x), (y, around_y) = row(), row()
    buffer = mtl.Buffer(4 * COUNT, device="cpu")
    if name == "a pointer in memory":
        y.view(np.uint64)[0] = buffer.address
    kernel(x, y, outside - 1, threads=1)
    with pytest.raises(mtl.KernelFault, match=r"thread \(0, 0, 0\)") as error:
        kernel(x, y, outside, threads=3)
    line = next(n for n, text in enumerate(functions.splitlines(), 3) if "void f" in text
                or "float f" in text or "void g" in text)  # fmt: skip
    assert f":{line}:" in str(error.value)
    assert intact(around_x)
    assert intact(around_y)


def test_a_function_that_calls_itself():
    functions = (
        "float f(device float* p, uint k) { return k == 0 ? p[0] : f(p + 1, k - 1) + p[0]; }"
    )
    head = "#include <metal_stdlib>\nusing namespace metal;\n"
    kernel = mtl.library(f"{head}{functions}\n{KERNEL}{{ y[i] = f(x, n); }}", device="cpu").k
    (x, _), (y, _) = row(), row()
    x[:] = 1
    kernel(x, y, COUNT - 1, threads=1)
    assert y[0] == COUNT
    with pytest.raises(mtl.KernelFault, match=r"read of index 8 of .*, which has 8 elements"):
        kernel(x, y, COUNT, threads=1)


@pytest.mark.parametrize("call", ["memcpy(y + i, x, n * 4)", "memset(y + i, 0, n * 4)"])
@pytest.mark.parametrize("engine", ENGINES)
def test_copies_of_a_size_that_a_launch_gives(call, engine):
    """No loop of MSL becomes one, but clang's builtins may be called."""
    text = f"#include <metal_stdlib>\nusing namespace metal;\n{KERNEL}{{ __builtin_{call}; }}"
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(text, device="cpu").k
    (x, _), (y, around) = row(), row()
    kernel(x, y, COUNT, threads=1)
    kernel(x, y, COUNT - 2, threads=3)
    with pytest.raises(mtl.KernelFault, match="of 'y', which has 32 bytes"):
        kernel(x, y, COUNT - 1, threads=3)
    assert intact(around)
