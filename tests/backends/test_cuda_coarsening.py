"""Several threads of Metal in one of CUDA: which kernels get such a form, and that it does the same.

The form runs here on the CPU: its IR is compiled for this machine, with a thread's and a block's
indices as variables, and called once for each thread of each launch.
"""

import ctypes
import os
import platform
import re
import struct

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.runtime.geometry import launches_of
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.parser import definition
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object
from metalloid.runtime.memory.buffer import Window

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
ONE = "uint i [[thread_position_in_grid]]"
MANY = "threads in one"


LOADED = {"float": 8, "long": 4, "float2": 4}
#: Kernels of small elements, and how many adjacent threads run in one; 4: the same thread of four
#: threadgroups, whose addresses are not known to be adjacent, or to be aligned.
ADJACENT = {
    "bytes": (16, "device uchar* y, device const uchar* x", "y[i] ^= x[i];"),
    "halves": (8, "device half* y, device const half* x", "y[i] = 0.5h * x[i] + y[i];"),
    "bfloats": (8, "device bfloat* y", "y[i] = 2;"),
    "guarded_bytes": (16, "device uchar* y, constant uint& n", "if (i < n) y[i] = 3;"),
    "halves_and_floats": (8, "device float* y, device const half* x", "y[i] += x[i];"),
    "asked_bytes": (16, "device char* y, device const char* x", "if (x[i] > 3) y[i] = x[i];"),
    "at_the_next": (4, "device uchar* y, device const uchar* x", "y[i] = x[i + 1];"),
    "three_further": (4, "device uchar* y, uint g [[threadgroup_position_in_grid]], "
                      "uint t [[thread_position_in_threadgroup]], "
                      "uint s [[threads_per_threadgroup]]", "y[(g * s + 3) + t] = 1;"),
    "in_its_group": (16, "device uchar* y, uint g [[threadgroup_position_in_grid]], "
                     "uint t [[thread_position_in_threadgroup]], "
                     "uint s [[threads_per_threadgroup]]", "y[g * s + t] = 1;"),
    "or_at_the_first": (4, "device uchar* y, constant uint& n",
                        "uint k = 0; if (n > 3) { y[i] = 2; k = i; } y[k] = 1;"),
    "from_a_place": (4, "device uchar* y, constant uint& n", "(y + n)[i] = 1;"),
    "from_memory": (4, "device uchar* device* y", "y[0][i] = 1;"),
    "every_second": (4, "device uchar* y, device const uchar* x", "y[i] = x[2 * i];"),
    "gathered": (4, "device uchar* y, device const uint* x", "y[i] = y[x[i]];"),
    "backwards": (4, "device uchar* y, constant uint& n", "y[n - i] = 1;"),
    "scattered": (4, "device half* y, device const uint* x", "y[x[i]] = i;"),
    "by_lane": (4, "device uchar* y, uint l [[thread_index_in_simdgroup]]", "y[i] = l;"),
    "rows": (4, "device half* y, constant uint& n, uint2 p [[thread_position_in_grid]]",
             "y[p.y * n + p.x] = 1;"),
}  # fmt: skip
ADJACENT_TEXT = HEAD + "\n".join(
    f"kernel void {name}({parameters}{'' if 'uint2 p' in parameters else f', {ONE}'}) {{ {body} }}"
    for name, (_, parameters, body) in ADJACENT.items()
)

REFUSED = {
    "atomic": "atomic_fetch_add_explicit((device atomic_uint*)x, 1u, memory_order_relaxed);",
    "atomic_load": "x[i] = atomic_load_explicit((device atomic_uint*)x, memory_order_relaxed);",
    "volatile_store": "((device volatile uint*)x)[i] = 1;",
    "volatile_load": "x[i] = ((device volatile uint*)x)[i + 1];",
    "fence": "x[i] = 1; atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);"
    " x[i + 1] = 2;",
    "barrier": "x[i] = 1; threadgroup_barrier(mem_flags::mem_device); x[i + 1] = 2;",
    "simdgroup_only": "x[i] = 1; simdgroup_barrier(mem_flags::mem_device); x[i + 1] = 2;",
    "simdgroup_function": "x[i] = simd_sum(x[i]);",
    "vote": "x[i] = simd_any(x[i] > 3);",
    "threadgroup_memory": "threadgroup uint t[64]; t[i % 64] = i; x[i] = t[(i + 1) % 64];",
    "loop": "uint s = 0; for (uint k = 0; k < x[0]; k++) { s += x[k * i]; } x[i] = s;",
    "own_array": "uint t[8] = {i, 1, 2, 3, x[i], 5, 6, 7}; x[i] = t[x[i + 1] & 7];",
    "branch_behind_a_store": "x[i] = 1; if (x[i + 1] > i) x[i + 2] = 5;",
    "down_the_columns": "x[i * x[0]] = x[i];",
    "loads_enough": "device uint4* y = (device uint4*)x; y[i] = y[i] * y[i + 1];",
    "lanes_in_another_order": """simdgroup_half8x8 a, b; simdgroup_float8x8 c(0);
    simdgroup_load(a, (device half*)x); simdgroup_load(b, (device half*)x);
    simdgroup_multiply_accumulate(c, a, b, c); simdgroup_store(c, (device float*)x);""",
}


@pytest.fixture(scope="module")
def offline():
    """All of them, for a GPU that is not there."""
    adds = [
        f"kernel void add_{kind}(device {kind}* y, device const {kind}* x, {ONE})"
        " { y[i] = y[i] + x[i]; }"
        for kind in LOADED
    ]
    others = [
        f"kernel void {name}(device uint* x, {ONE}) {{ {REFUSED[name]} }}" for name in REFUSED
    ]
    guarded = f"kernel void guarded(device float* y, constant uint& n, {ONE})"
    text = "\n".join([HEAD, *adds, *others, guarded, "{ if (i < n) y[i] += 1; }"])
    return mtl.library(text, target="cuda:sm_90")


@pytest.fixture(scope="module")
def adjacent():
    """The library of kernels with small elements."""
    return mtl.library(ADJACENT_TEXT, target="cuda:sm_90")


def accesses(kernel):
    """The accesses of the second form to the device's memory, in order."""
    _, _, text = kernel.asm["ptx"].partition(f".visible .entry {kernel.name}_coarsened")
    return re.findall(r"\b(ld|st)\.global(?!\.nc)", text)


@pytest.mark.parametrize(("kind", "loads"), LOADED.items())
def test_all_loads_of_coarsened_threads_come_before_their_stores(offline, kind, loads):
    kernel = offline.function(f"add_{kind}")
    assert kernel.engine == f"cuda: sm_90; on large grids {loads // 2} {MANY}"
    assert accesses(kernel) == ["ld"] * loads + ["st"] * (loads // 2)


@pytest.mark.parametrize("name", ADJACENT)
@pytest.mark.sample(3)
def test_adjacent_threads_with_small_elements_make_accesses_of_16_bytes(adjacent, name):
    kernel, (count, _, _) = adjacent.function(name), ADJACENT[name]
    assert kernel.engine == f"cuda: sm_90; on large grids {count} {MANY}"
    _, _, text = kernel.asm["ptx"].partition(f".visible .entry {kernel.name}_coarsened")
    wide = re.findall(r"(?:ld|st)\.global\.v4\.b32", text)
    assert bool(wide) == (count > 4)


def test_a_guard_is_asked_of_all_of_them_at_once(offline):
    assert offline.guarded.engine.endswith(f"4 {MANY}")
    assert accesses(offline.guarded)[:8] == ["ld"] * 4 + ["st"] * 4


def test_values_of_function_constants_are_read():
    text = f"""{HEAD} constant bfloat3 c [[function_constant(0)]];
        kernel void f(device packed_bfloat3* y, {ONE}) {{ y[i] = packed_bfloat3(c); }}"""
    kernel = mtl.library(text, target="cuda:sm_90").function("f", {0: (1.0, 2.0, 3.0)})
    assert kernel.engine.endswith(MANY)


@pytest.mark.parametrize("name", REFUSED)
def test_what_others_could_see_the_order_of_stays_as_it_is(offline, name):
    kernel = offline.function(name)
    assert kernel.engine == "cuda: sm_90"
    assert "_coarsened" not in kernel.asm["ptx"]


# -- what it does, on the CPU

DRIVER = """
unsigned place[9];
static unsigned lane_of(void) {
  return (place[0] + place[6] * (place[1] + place[7] * place[2])) % 32;
}
unsigned mtl_plain_lane(void) { return lane_of(); }
unsigned laneid(void) { return lane_of(); }
void mtl_kernel(void*);
void mtl_coarsened(void*) __attribute__((weak));
__attribute__((visibility("default"))) void run(int several, void* data, const unsigned* shape) {
  unsigned* p = place;
  for (int k = 0; k < 3; k++) p[6 + k] = shape[3 + k];
  for (p[5] = 0; p[5] < shape[2]; p[5]++)
    for (p[4] = 0; p[4] < shape[1]; p[4]++)
      for (p[3] = 0; p[3] < shape[0]; p[3]++)
        for (p[2] = 0; p[2] < shape[5]; p[2]++)
          for (p[1] = 0; p[1] < shape[4]; p[1]++)
            for (p[0] = 0; p[0] < shape[3]; p[0]++) (several ? mtl_coarsened : mtl_kernel)(data);
}
"""


def on_this_machine(ir, driver=DRIVER, storage="external", functions=()):
    """A kernel's functions for the CPU, as a function that runs one launch.

    `storage` is that of the indices in `driver`, and `functions` are names of intrinsics and of
    what it has instead.
    """
    plain = definition(ir, ENTRY_SYMBOL)
    before, _, after = ir.partition(plain)
    second = re.search(r"^define [^\n]*@mtl_coarsened\(.*?^\}\n", after, re.M | re.S)
    text = f"{plain}\n{second[0] if second else ''}"
    text = re.sub(r"byval ?\([^)]*\) ", "", text).replace("ptx_kernel ", "")
    text = re.sub(r" addrspace\(\d\)|, ![a-z.]+ !(?:\d+|\{\})| #\d+", "", text)
    text = re.sub(r"(\S+) = addrspacecast ptr (\S+) to ptr", r"\1 = freeze ptr \2", text)
    text = re.sub(r"call void asm sideeffect[^\n]*", "ret void\nmtl.dead:", text)
    registers = {
        f"llvm.nvvm.read.ptx.sreg.{name}.{axis}": 3 * number + k
        for number, name in enumerate(("tid", "ctaid")) for k, axis in enumerate("xyz")
    }  # fmt: skip
    for name, number in registers.items():
        address = f"getelementptr (i32, ptr @place, i64 {number})"
        text = re.sub(rf"(?:tail )?call i32 @{name}\(\)", f"load i32, ptr {address}", text)
    for intrinsic, function in (("llvm.nvvm.read.ptx.sreg.laneid", "laneid"), *functions):
        text, before, after = (
            each.replace(f"@{intrinsic}(", f"@{function}(") for each in (text, before, after)
        )
    called = set(re.findall(r"@(?!mtl_kernel|mtl_coarsened|place)[\w.]+", text))
    declared = [
        line
        for line in (before + after).split("\n")
        if re.match(r"(declare|define) ", line) and called & set(re.findall(r"@[\w.]+", line))
    ]
    declared = [re.sub(r" #\d+| \{$|local_unnamed_addr|internal ", "", line) for line in declared]
    declared = [re.sub(r"^define", "declare", line) for line in declared]
    types = re.findall(r"^%\S.* = type .*$", before, re.M)
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine()
    )
    objects = {}
    module = "\n".join([*types, f"@place = {storage} global [9 x i32]", *declared, text])
    for name, language, source in (("k.o", "ir", module), ("run.o", "c", driver)):
        result = clang.run(
            ["clang", "-x", language, "-target", f"{machine}-linux-musl", "-w", "-O1", "-fPIC",
             "-c", "-o", "-", "-"], source
        )  # fmt: skip
        assert result.status == 0, result.messages
        objects[name] = result.output
    return shared_object(objects, "several.so")


@pytest.fixture
def both_forms(tmp_path):
    """A function that runs a kernel's launches, with the second form and without."""

    def make(parameters, body):
        text = f"{HEAD}kernel void k({parameters}) {{ {body} }}"
        compiled = mtl.library(text, target="cuda:sm_90").k
        factor = re.search(rf"(\d+) {MANY}", compiled.engine)
        path = tmp_path / f"k{len(os.listdir(tmp_path))}.so"
        path.write_bytes(on_this_machine(compiled.asm["ll"]))
        run = ctypes.CDLL(str(path)).run
        count = max(1, len(compiled.signature.sources))
        positions = [p.position for p in compiled.signature.arguments]

        def launch(coarsened, grid, group, *arrays):
            words = [0] * count
            for position, array in zip(positions, arrays, strict=True):
                words[position] = array.__array_interface__["data"][0]
            number = int(factor[1]) if coarsened else 1
            for dispatch in launches_of(grid, group, coarsening=number):
                data = struct.pack(f"={count}Q10I", *words, *dispatch.data)
                run(int(dispatch.coarsening > 1), data, struct.pack("=6I", *dispatch.dimensions))

        return launch

    return make


IDS = """
  device uint* o = y + 20 * (p.x + n.x * (p.y + n.y * p.z));
  o[0] = p.x; o[1] = p.y; o[2] = p.z; o[3] = t.x; o[4] = t.y; o[5] = t.z;
  o[6] = g.x; o[7] = g.y; o[8] = g.z; o[9] = s.x; o[10] = s.y; o[11] = s.z;
  o[12] = m.x; o[13] = m.y; o[14] = m.z; o[15] = index; o[16] = lane; o[17] = simdgroup;
  o[18] += 1;
"""
IDS_OF = (
    "device uint* y, uint3 p [[thread_position_in_grid]], "
    "uint3 t [[thread_position_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]], "
    "uint3 s [[threads_per_threadgroup]], uint3 n [[threads_per_grid]], "
    "uint3 m [[threadgroups_per_grid]], uint index [[thread_index_in_threadgroup]], "
    "uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]"
)
GRIDS = [
    ((1024, 1, 1), (32, 1, 1)), ((1000, 1, 1), (32, 1, 1)), ((31, 1, 1), (32, 1, 1)),
    ((32 * 13, 1, 1), (32, 1, 1)), ((320, 6, 4), (8, 2, 2)), ((44, 6, 4), (4, 2, 2)),
    ((32, 7, 2), (4, 2, 2)), ((9, 3, 3), (1, 1, 1)), ((96, 1, 65), (4, 1, 65)),
]  # fmt: skip


def expected_ids(grid, group):
    """The output of IDS, computed by NumPy: row by row of the grid."""
    z, y, x = (axis.reshape(-1) for axis in np.indices(grid[::-1]))
    positions = np.stack([x, y, z], 1)
    groups, t = np.divmod(positions, group)
    sizes = np.minimum(np.array(grid) - groups * np.array(group), group)
    index = t[:, 0] + sizes[:, 0] * (t[:, 1] + sizes[:, 1] * t[:, 2])
    many = np.broadcast_to(-(-np.array(grid) // np.array(group)), positions.shape)
    columns = [positions, t, groups, sizes, many, index[:, None], index[:, None] % 32,
               index[:, None] // 32, np.ones_like(x)[:, None], np.zeros_like(x)[:, None]]  # fmt: skip
    return np.concatenate(columns, 1).astype(np.uint32)


def test_every_thread_runs_once_and_knows_its_indices(both_forms):
    launch = both_forms(IDS_OF, IDS)
    for grid, group in GRIDS:
        ids = np.zeros((np.prod(grid), 20), np.uint32)
        launch(True, grid, group, ids)
        if group[2] <= 64 and not any(e % g for e, g in zip(grid, group, strict=True)):
            np.testing.assert_array_equal(ids, expected_ids(grid, group), f"{grid} {group}")
        else:  # threads of tail threadgroups are lanes in order only on a GPU
            np.testing.assert_array_equal(ids[:, 18] > 0, True, f"{grid} {group}")


def test_threads_that_diverge_at_a_branch_start_over(both_forms):
    launch = both_forms(
        f"device float* y, device const float* x, constant uint& n, {ONE}",
        "if (i >= n) return; float v = x[i]; y[i] = v > 0 ? v * 3 : y[i] - v;",
    )
    rng = np.random.default_rng(1)
    for many in (0, 1, 31, 32, 33, 100, 257, 500, 1000):
        x, y = rng.normal(size=(2, 1000)).astype(np.float32)
        expected = y.copy()
        expected[:many] = np.where(x > 0, x * np.float32(3), y - x)[:many]
        launch(True, (1000, 1, 1), (32, 1, 1), y, x, np.array([many], np.uint32))
        np.testing.assert_array_equal(y, expected, f"{many} of them")


def test_a_branch_on_a_loaded_value_may_diverge(both_forms):
    launch = both_forms(
        f"device float* y, device const int* at, device const float* x, {ONE}",
        "int k = at[i]; if (k >= 0) { y[i] = x[k]; } else if (k == -1) { y[i] = 7; }"
        " else { y[i] = x[i] + y[i]; }",
    )
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 640)).astype(np.float32)
    for low in (0, -1, -3):
        at = rng.integers(low, 640 if low < -1 else low + 1, 640).astype(np.int32)
        at[:256] = rng.integers(low, low + 2, 256)  # groups that mostly agree
        result = y.copy()
        launch(True, (640, 1, 1), (32, 1, 1), result, at, x)
        expected = np.where(at >= 0, x[at], np.where(at == -1, np.float32(7), x + y))
        np.testing.assert_array_equal(result, expected, f"{low}")


def test_both_forms_are_one_kernel(both_forms):
    """A stencil with its edges, on grids with and without something left over."""
    launch = both_forms(
        "device int* y, device const int* x, constant int& w, constant int& h, "
        "uint2 p [[thread_position_in_grid]]",
        """int i = p.x, j = p.y, at = j * w + i;
        if (i > 0 && j > 0 && i < w - 1 && j < h - 1) y[at] = x[at - 1] + x[at + 1] - x[at - w];
        else y[at] = x[at];""",
    )
    rng = np.random.default_rng(3)
    for width, height in ((64, 8), (71, 8), (64, 7), (13, 4)):
        x = rng.integers(-99, 99, (height, width), dtype=np.int32)
        sizes = np.array([width], np.int32), np.array([height], np.int32)
        expected = x.copy()
        expected[1:-1, 1:-1] = x[1:-1, :-2] + x[1:-1, 2:] - x[:-2, 1:-1]
        for coarsened in (False, True):
            y = np.zeros_like(x)
            launch(coarsened, (width, height, 1), (4, 2, 1), y, x, *sizes)
            np.testing.assert_array_equal(y, expected, f"{width} x {height}, {coarsened}")


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_adjacent_threads_compute_the_same(both_forms, dtype):
    """With a guard that may part them, and one that asks what was read."""
    kind = {"uint8": "uchar", "int16": "short"}[dtype]
    launch = both_forms(
        f"device {kind}* y, device const {kind}* x, constant uint& n, device float* z, {ONE}, "
        "uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]",
        "if (i < n) { y[i] = x[i] > 9 ? x[i] : y[i]; z[i] = t + 1000 * g + x[i]; }",
    )
    rng = np.random.default_rng(5)
    for count, many in ((640, 640), (640, 0), (640, 333), (1000, 997), (2048, 17)):
        x, y = rng.integers(0, 20, (2, 2048)).astype(dtype)
        z, index = np.zeros(2048, np.float32), np.arange(2048)
        many = min(many, count)
        expected, expected_z = y.copy(), z.copy()
        expected[:many] = np.where(x > 9, x, y)[:many]
        expected_z[:many] = (index % 64 + 1000 * (index // 64) + x)[:many]
        launch(True, (count, 1, 1), (64, 1, 1), y, x, np.array([many], np.uint32), z)
        np.testing.assert_array_equal(y, expected, f"{many} of {count}")
        np.testing.assert_array_equal(z, expected_z, f"{many} of {count}")


# -- on a GPU


@pytest.mark.skipif(
    not os.environ.get("METALLOID_DEVICE", "").startswith("cuda"), reason="cuda: expects a GPU"
)
def test_threads_of_large_grids_know_their_indices_and_compute_the_same():
    text = f"""{HEAD}kernel void ids({IDS_OF}) {{ {IDS} }}
    kernel void saxpy(device float* y, device const float* x, constant float& a, {ONE})
    {{ y[i] = a * x[i] + y[i]; }}"""
    lib = mtl.library(text)
    assert MANY in lib.ids.engine
    for grid, group in (((1 << 20, 1, 1), (64, 1, 1)), ((1 << 20, 2, 1), (33, 1, 1)),
                        ((4096, 64, 4), (8, 4, 2)), ((4095, 64, 4), (8, 4, 2))):  # fmt: skip
        ids = mtl.Buffer(np.zeros((np.prod(grid), 20), np.uint32))
        lib.ids(ids, threads=grid, group_size=group)
        np.testing.assert_array_equal(np.asarray(ids), expected_ids(grid, group))
    rng = np.random.default_rng(4)
    for count in (1 << 22, (1 << 22) + 77):
        x, y = rng.normal(size=(2, count)).astype(np.float32)
        expected = np.float32(0.5) * x + y
        result = mtl.Buffer(y)
        lib.saxpy(result, mtl.Buffer(x), 0.5, threads=count)
        np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.skipif(
    not os.environ.get("METALLOID_DEVICE", "").startswith("cuda"), reason="cuda: expects a GPU"
)
def test_adjacent_threads_and_odd_addresses_on_a_gpu():
    kernel = mtl.library(ADJACENT_TEXT).bytes
    assert f"16 {MANY}" in kernel.engine
    count = (1 << 22) + 77
    x, y = np.random.default_rng(6).integers(0, 256, (2, count + 1), dtype=np.uint8)
    for start, group in ((0, 256), (0, 250), (1, 256)):
        buffers = mtl.Buffer(y), mtl.Buffer(x)
        windows = (Window(buffer, start, x.dtype, (count,)) for buffer in buffers)
        kernel(*windows, threads=count, group_size=group)
        expected = y.copy()
        expected[start : start + count] ^= x[start : start + count]
        np.testing.assert_array_equal(np.asarray(buffers[0]), expected)
    full, other = mtl.Buffer(y), mtl.Buffer(x)
    for _ in range(5):  # as quickly as launches are
        kernel(full, other, threads=count, group_size=256)
    np.testing.assert_array_equal(np.asarray(full)[:count], (y ^ x)[:count])
