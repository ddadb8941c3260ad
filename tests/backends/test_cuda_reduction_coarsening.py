"""CUDA threads that run rows of Metal threads and add the sums of what these add.

Both kernels run here on the CPU: their IR is compiled for this machine, and the 32 lanes of a warp
are threads that meet at each function of lanes.
"""

import ctypes
import struct
import threading

import numpy as np
import pytest
from test_cuda_coarsening import HEAD, on_this_machine

import metalloid as mtl
from metalloid.backends.cuda.runtime.geometry import launches_of
from metalloid.differentiate.adjoint import adjoint_of

LANES = 32
DRIVER = """
_Thread_local unsigned place[9];
static unsigned words[32];
static void (*meet)(void*);
static void* barrier;
void mtl_kernel(void*);
void mtl_coarsened(void*) __attribute__((weak));
unsigned mtl_plain_lane(void) { return place[0] % 32; }
unsigned laneid(void) { return place[0] % 32; }
unsigned mtl_plain_lane_of(unsigned lane) { return lane; }
unsigned mtl_plain_numbers_of_lanes(unsigned mask) { return mask; }
unsigned activemask(void) { return 0xffffffffu; }
unsigned shuffle(unsigned mask, unsigned value, unsigned lane, unsigned width) {
  words[laneid()] = value;
  meet(barrier);
  unsigned result = words[lane % 32];
  meet(barrier);
  return result;
}
unsigned ballot(unsigned mask, _Bool vote) {
  unsigned result = 0;
  words[laneid()] = vote;
  meet(barrier);
  for (unsigned lane = 0; lane < 32; lane++) result |= words[lane] << lane;
  meet(barrier);
  return result;
}
__attribute__((visibility("default"))) void set(void (*wait)(void*), void* at) {
  meet = wait;
  barrier = at;
}
__attribute__((visibility("default"))) void run(int coarsened, void* data, const unsigned* shape,
                                                unsigned lane) {
  unsigned* p = place;
  for (int k = 0; k < 3; k++) p[6 + k] = shape[3 + k];
  for (p[5] = 0; p[5] < shape[2]; p[5]++)
    for (p[4] = 0; p[4] < shape[1]; p[4]++)
      for (p[3] = 0; p[3] < shape[0]; p[3]++)
        for (p[2] = 0; p[2] < shape[5]; p[2]++)
          for (p[1] = 0; p[1] < shape[4]; p[1]++)
            for (p[0] = lane; p[0] < shape[3]; p[0] += 32)
              (coarsened ? mtl_coarsened : mtl_kernel)(data);
}
"""

FUNCTIONS = (
    ("llvm.nvvm.shfl.sync.idx.i32", "shuffle"),
    ("llvm.nvvm.vote.ballot.sync", "ballot"),
    ("llvm.nvvm.activemask", "activemask"),
)
MATMUL = """
kernel void matmul(device const float *a, device const float *b, device float *c, constant int &n,
                   constant int &depth, uint2 at [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < depth; k++) sum += a[at.y * depth + k] * b[k * n + at.x];
  c[at.y * n + at.x] = sum;
}"""


@pytest.fixture
def run(tmp_path):
    """A function that runs the launches of a kernel for NVIDIA GPUs, coarsened or not."""

    def make(text, name):
        kernel = mtl.library(text, target="cuda:sm_90")[name]
        path = tmp_path / "kernel.so"
        path.write_bytes(
            on_this_machine(kernel.asm["ll"], DRIVER, "external thread_local", FUNCTIONS)
        )
        library, process = ctypes.CDLL(str(path)), ctypes.CDLL(None)
        barrier = ctypes.create_string_buffer(128)
        assert process.pthread_barrier_init(barrier, None, LANES) == 0

        def launch(is_coarsened, grid, group, *arrays):
            library.set(ctypes.cast(process.pthread_barrier_wait, ctypes.c_void_p), barrier)
            words = [0] * len(kernel.signature.sources)
            for parameter, array in zip(kernel.signature.arguments, arrays, strict=True):
                words[parameter.position] = array.__array_interface__["data"][0]
            factor = kernel._program._kernel.coarsening if is_coarsened else 1
            sub_grids = launches_of(grid, group, True, factor, kernel._program._kernel.axis)
            assert any(each.coarsening > 1 for each in sub_grids) == is_coarsened
            shapes = [
                (
                    int(each.coarsening > 1),
                    struct.pack(f"={len(words)}Q10I", *words, *each.data),
                    struct.pack("=6I", *each.dimensions),
                )
                for each in sub_grids
            ]

            def run_lane(lane):
                for shape in shapes:
                    library.run(*shape, lane)

            lanes = [threading.Thread(target=run_lane, args=(k,)) for k in range(LANES)]
            for lane in lanes:
                lane.start()
            for lane in lanes:
                lane.join()

        return launch

    return make


@pytest.mark.parametrize(("is_coarsened", "depths"), [(False, [9]), (True, [0, 1, 3, 4, 11])])
def test_the_adjoint_of_a_product_of_matrices(run, monkeypatch, is_coarsened, depths):
    """Rows of four threadgroups and three more; iterations by four, and those that are left."""
    monkeypatch.setattr("metalloid.differentiate.adjoint._is_for_gpu", lambda kernel: True)
    kernel = mtl.library(HEAD + MATMUL, device="cpu").matmul
    launch = run(adjoint_of(kernel).source, "matmul_vjp")
    n, rows = 32, 7
    random = np.random.default_rng(0)
    for depth in depths:
        a, b, d_c = (
            random.normal(size=size).astype(np.float32)
            for size in ((rows, depth), (depth, n), (rows, n))
        )
        d_a, d_b = np.zeros_like(a), np.zeros_like(b)
        arrays = a, b, np.zeros_like(d_c), np.array([n], np.int32), np.array([depth], np.int32)
        launch(is_coarsened, (n, rows, 1), (32, 1, 1), *arrays, d_c, d_a, d_b)
        np.testing.assert_allclose(d_a, d_c @ b.T, atol=1e-5)
        np.testing.assert_allclose(d_b, a.T @ d_c, atol=1e-5)


ADD = "atomic_fetch_add_explicit(&y[{}], x[at.x + k], memory_order_relaxed);"
#: Loops that add to memory, and the axis along which rows are merged; None: they are not.
LOOPS = {
    "each row": (1, ADD.format("at.x")),
    "each column": (0, ADD.format("at.y")),
    "one element, by rows as by columns": (0, ADD.format("k")),
    "all lanes rather than one": (
        1, "if (at.x % 32 == 0) { " + ADD.format("at.y") + " } " + ADD.format("at.x + k")),
    "the same value": (1, "atomic_fetch_add_explicit(&y[at.x], 1.0f, memory_order_relaxed);"),
    "private memory": (1, "float m[3]; m[0] = m[1] = m[2] = k; m[k % 3] += n; "
                          + ADD.format("at.x + int(m[n % 3])")),
    "other elements": (None, ADD.format("at.y * 64 + at.x")),
    "rows that leave": (None, "if (at.y > k) break; " + ADD.format("at.x")),
    "the sum so far": (None, "x[0] += atomic_fetch_add_explicit(&y[at.x], 1.0f, memory_order_relaxed);"),
    "a barrier": (None, "threadgroup_barrier(mem_flags::mem_none); " + ADD.format("at.x")),
    "threadgroup memory": (None, "threadgroup float s[4]; s[k % 4] = x[k]; s[0] += s[1]; x[k] = s[0]; "
                           + ADD.format("at.x")),
    "integers": (None, "atomic_fetch_add_explicit((device atomic_uint *)&x[k], 1u, "
                 "memory_order_relaxed); " + ADD.format("at.x")),
    "private memory of each row": (None, "float m[9] = {}; for (int j = 0; j < n; j++) m[(at.y + j * k) % 9] += j; "
                                   + ADD.format("at.x + int(m[n % 9])")),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_which_loops_are_coarsened(name):
    axis, body = LOOPS[name]
    kernel = mtl.library(
        f"""{HEAD}kernel void f(device float *x, device atomic_float *y, constant int &n,
        uint2 at [[thread_position_in_grid]]) {{ for (int k = 0; k < n; k++) {{ {body} }} }}""",
        target="cuda:sm_90",
    ).f
    compiled = kernel._program._kernel
    assert (compiled.coarsening, compiled.axis) == ((1, 0) if axis is None else (4, axis))
    assert kernel._program.default_group_size((256, 256, 1)) == (64 if axis else 256, 1, 1)


def test_all_rows_of_a_grid_run():
    """Also if there are more than a launch of the driver may have, or some are left."""
    for rows in (1, 3, 4, 7, 262_140, 300_003, 524_289):
        for coarsening in (1, 4):
            covered = 0
            for each in launches_of((64, rows, 1), (32, 1, 1), True, coarsening, 1):
                x, count = each.dimensions[:2]
                assert x == 2
                assert count <= 65535
                assert each.data[7] == covered
                assert each.data[9] == 1
                covered += count * each.coarsening
            assert covered == rows
