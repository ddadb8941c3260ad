"""Kernels compiled for NVIDIA GPUs, which needs none."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.dynamic_shared_memory import use_dynamic_shared_memory
from metalloid.backends.cuda.runtime.geometry import launches_of
from metalloid.compiler.ir.parser import definition

PACKAGE = Path(mtl.__file__).parent
OURS = ("bench/kernels.metal", "cli/julia.metal", "compat/metalpy/metal_kernels.metal")
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def ptx(text, target="cuda:sm_90", **options):
    """PTX of the one kernel of a text."""
    (kernel,) = mtl.library(HEAD + text, target=target, **options).functions
    return mtl.library(HEAD + text, target=target, **options)[kernel].asm["ptx"]


@pytest.mark.parametrize("target", ["cuda:sm_75", "cuda:sm_80", "cuda:sm_90"])
@pytest.mark.parametrize("file", OURS)
@pytest.mark.sample(2)
def test_our_kernels_compile(file, target):
    lib = mtl.library(path=PACKAGE / file, target=target)
    # A quarter of a file for the newest, an eighth for the others; test_every_kernel_of_ours has all.
    names = lib.functions[:: 4 if target.endswith("90") else 8]
    check_ptx(lib, names, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_75", "cuda:sm_80", "cuda:sm_90"])
@pytest.mark.parametrize("file", OURS)
def test_every_kernel_of_ours(file, target):
    lib = mtl.library(path=PACKAGE / file, target=target)
    check_ptx(lib, lib.functions, target)


def check_ptx(lib, names, target):
    for name in names:
        text = lib[name].asm["ptx"]
        assert f".target {target.removeprefix('cuda:')}" in text
        entry = name if name.isidentifier() else "mtl_kernel"
        assert f".entry {entry}(" in text
        assert ".extern .func" not in text


def test_constructs_of_msl():
    text = ptx("""
        kernel void all(device float* y, device const float4* x, device atomic_uint* n,
                        uint i [[thread_position_in_grid]], uint l [[thread_index_in_simdgroup]]) {
          threadgroup float shared[64];
          shared[i % 64] = simd_shuffle_xor(x[i].y, 1);
          threadgroup_barrier(mem_flags::mem_threadgroup);
          atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
          y[i] = fma(shared[l], 2.0f, half(y[i]));
        }""")
    for instruction in ("shfl.sync", "bar", ".shared", r"(atom|red)\S*\.add", "fma.rn.f32"):
        assert re.search(instruction, text), instruction
    assert "ld.global.v4" in ptx(
        "kernel void copy(device float4* y, device const float4* x,"
        " uint i [[thread_position_in_grid]]) { y[i] = x[i]; }"
    )


def test_math_modes():
    text = (
        "kernel void f(device float* x, uint i [[thread_position_in_grid]])"
        " { x[i] = x[i] * x[i + 1] + x[i + 2]; }"
    )
    assert "fma.rn.f32" not in ptx(text)
    assert "fma.rn.f32" in ptx(text, math_mode="relaxed")


#: What member_masks.py knows of the members of a simdgroup function, by kernel: how often `activemask` is
#: asked for, once at the start, or once more; and how often threads vote which edge they take.
MEMBERS = {
    "x[i] = simd_sum(x[i]);": (1, 0),
    "if (i >= n) return; x[i] = simd_sum(x[i]);": (1, 1),
    "if (i >= n) return; for (uint k = 0; k < n; ++k) x[k] += simd_sum(x[i + k]);": (1, 1),
    "if (g == 0) x[i] = simd_sum(x[i]);": (1, 0),
    "for (uint k = i; k < n; k += 32) x[k] *= 2; x[i] = simd_sum(x[i]);": (1, 0),
    "if (x[i] > 0) x[i] = simd_sum(x[i]);": (1, 1),
    "if (x[i] > 0) x[i] = simd_sum(x[i]); x[i + n] = 1;": (1, 1),
    "if (x[i] > 0) { for (uint k = i; k < n; ++k) x[k] = 1; x[i] = simd_sum(x[i]); } x[i + n] = 1;": (
        1,
        1,
    ),
    "if (x[i] > 0) { if (x[i] > 2) x[i + n] = simd_sum(x[i]); x[i] = simd_sum(x[i]); } x[i] += 1;": (
        1,
        2,
    ),
    "for (uint k = 0; k < n; ++k) { if (x[k + i] > 0) x[k] = simd_sum(x[i]); x[k + 1] = 2; }": (
        1,
        1,
    ),
    # After the copy for full warps, and in each iteration.
    "for (uint k = i; k < n; k += 32) x[k] = simd_sum(x[k]);": (1, 3),
    "for (uint k = i; k < n; k += 32) { x[k] = simd_sum(x[k]); if (x[k + 1] > 3) break; }": (2, 1),
    "if (x[i] > 3) { if (x[i] > 5) x[i] = 0; else x[i + 1] = 3; return; } x[i] = simd_sum(x[i]);": (
        1,
        1,
    ),
    "if (x[i] > 0) { x[i + 1] = 2; if (x[i + n] > 1) return; x[i] += 1; } x[i] = simd_sum(x[i]);": (
        2,
        0,
    ),
}


@pytest.mark.parametrize("body", MEMBERS)
def test_members_of_simdgroup_functions_are_known_where_they_can_be(body):
    text = f"""
        kernel void f(device float* x, constant uint& n, uint i [[thread_position_in_grid]],
                      uint g [[simdgroup_index_in_threadgroup]]) {{ {body} }}"""
    ir = mtl.library(HEAD + text, target="cuda:sm_90").f.asm["ll"]
    ir = definition(ir, "mtl_kernel")
    counts = [len(re.findall(rf"call .*@llvm\.nvvm\.{name}\(", ir))
             for name in ("activemask", r"vote\.ballot\.sync")]  # fmt: skip
    asked, votes = MEMBERS[body]
    assert counts == [asked, 1 + votes]


def test_loops_are_copied_for_full_warps():
    def text(body):
        return ptx(f"""
            kernel void f(device float* x, constant uint& n,
                          uint i [[thread_position_in_grid]]) {{ {body} }}""")

    strided = "for (uint k = i; k < n; k += 32) x[k] {} simd_sum(x[k]);"
    assert text(strided.format("=")).count("vote.sync.all") == 1
    # No simdgroup function; then, an exit that is not at the end.
    assert "vote.sync.all" not in text("for (uint k = i; k < n; k += 32) x[k] *= 2;")
    assert "vote.sync.all" not in text(
        "uint k = i; while (true) { x[k] = simd_sum(x[k]); if (x[k] > 3) break; k += 32;"
        " if (k >= n) return; x[k] = 1; }"
    )


BARRIERS = {
    "threadgroup_barrier(mem_flags::mem_threadgroup);": False,
    "if (i >= n) return; threadgroup_barrier(mem_flags::mem_threadgroup);": False,
    "if (g == 0) threadgroup_barrier(mem_flags::mem_threadgroup);": False,
    "for (uint k = i; k < n; k += 32) threadgroup_barrier(mem_flags::mem_threadgroup);": False,
    "if (x[i] > 0) threadgroup_barrier(mem_flags::mem_threadgroup); x[i + n] = 1;": True,
}


@pytest.mark.parametrize("body", BARRIERS)
def test_a_barrier_in_a_divergent_branch_is_reached_by_simdgroup(body):
    text = ptx(f"""
        kernel void f(device float* x, constant uint& n, uint i [[thread_position_in_grid]],
                      uint g [[simdgroup_index_in_threadgroup]]) {{ {body} x[i] += 1; }}""")
    for name in (
        "mtl_open_divergent_barrier",
        "mtl_divergent_barrier",
        "mtl_leave_divergent_barrier",
    ):
        assert (f"call.uni {name}" in text) == BARRIERS[body]


def test_threads_that_return_early_end_at_once():
    text = ptx("""
        kernel void f(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {
          if (i >= n) return;
          threadgroup_barrier(mem_flags::mem_device);
          x[i] = 1;
        }""")
    assert "exit;" in text
    assert "ret;" not in text  # where threads might be made to wait for the others


#: Products of 8 x 8 matrices by what they become.
PRODUCTS = """
    kernel void f(device const half* a, device const half* b, device float* c) {
      simdgroup_matrix<half, 8, 8> left[ROWS][DEPTH], right[DEPTH];
      simdgroup_matrix<float, 8, 8> sums[ROWS];
      UNROLLED for (int i = 0; i < ROWS; ++i) simdgroup_load(sums[i], c + 64 * i);
      UNROLLED for (int k = 0; k < DEPTH; ++k) {
        simdgroup_load(right[k], b + 64 * k, 8, ulong2(0), TURNED);
        UNROLLED for (int i = 0; i < ROWS; ++i) {
          simdgroup_load(left[i][k], a + 64 * (DEPTH * i + k));
          simdgroup_multiply_accumulate(sums[i], left[i][k], right[k], sums[i]);
        }
      }
      UNROLLED for (int i = 0; i < ROWS; ++i) simdgroup_store(sums[i], c + 64 * i);
    }"""


@pytest.mark.parametrize(
    ("rows", "depth", "instructions"),
    [(1, 1, {"k8": 1}), (2, 1, {"k8": 1}), (1, 2, {"k16": 1}), (2, 2, {"k16": 1}),
     (3, 3, {"k8": 2, "k16": 2})],
)  # fmt: skip
@pytest.mark.parametrize("transposed", ["true", "false"])
def test_products_share_instructions_of_tensor_cores(rows, depth, instructions, transposed):
    macros = {
        "ROWS": str(rows),
        "DEPTH": str(depth),
        "TURNED": transposed,
        "UNROLLED": '_Pragma("clang loop unroll(full)")',
    }
    text = ptx(PRODUCTS, defines=macros)
    assert "shfl" not in text
    for shape in ("k8", "k16"):
        assert text.count(f"mma.sync.aligned.m16n8{shape}.") == instructions.get(shape, 0)
    # What was loaded turned is the right factor as it lies.
    assert ("movmatrix" in text) == (transposed == "false")


def test_what_is_constant_is_read_once():
    text = ptx("""
        struct Sizes { uint n; device float* more; };
        kernel void f(device float* x, constant uint& n, constant Sizes& sizes,
                      device const uint& m, uint i [[thread_position_in_grid]]) {
          for (uint k = 0; k < n; ++k) x[i + k * sizes.n] = m;
          sizes.more[0] = x[0];
        }""")
    loads = re.findall(r"ld\.global(\.nc)?\.[bu]", text)
    assert loads.count(".nc") == 3  # n, and two members
    assert loads.count("") >= 1  # m, which a store may change


def test_reductions_of_integers_are_an_instruction():
    text = """
        kernel void f(device uint* x, device int* y, uint i [[thread_position_in_grid]]) {
          x[i] = simd_sum(x[i]) + simd_or(x[i + 32]);
          y[i] = simd_min(y[i]);
        }"""
    for instruction in ("add.s32", "or.b32", "min.s32"):
        assert f"redux.sync.{instruction}" in ptx(text)
    assert "redux" not in ptx(text, target="cuda:sm_75")


def test_messages_go_to_a_block_of_the_host():
    text = ptx("""
        kernel void f(device float* x, uint i [[thread_position_in_grid]]) {
          assert(x[i] > 0);
          x[i] = 1;
        }""")
    assert ".global .align 8 .u64 mtl_report_block" in text
    assert "exit;" in text


def test_a_target_does_not_run(tmp_path):
    lib = mtl.library(HEAD + "kernel void f(device float* x) { *x = 1; }", target="cuda:sm_80")
    with pytest.raises(mtl.DeviceUnavailable, match=r"\[cuda:sm_80\] is a target to compile for"):
        lib.f(np.zeros(1, np.float32), threads=1)
    with pytest.raises(mtl.DeviceUnavailable, match="expected sm_75 or newer"):
        mtl.library("", target="cuda:sm_60")
    with pytest.raises(mtl.DeviceUnavailable, match="unknown kind of target 'rocm:gfx90'"):
        mtl.library("", target="rocm:gfx90")
    with pytest.raises(mtl.ArgumentError, match="not both"):
        mtl.library("", target="cuda:sm_80", device="cpu")


def test_the_command(tmp_path):
    file = PACKAGE / "cli/julia.metal"
    command = [sys.executable, "-m", "metalloid", "compile", str(file), "--target", "cuda:sm_80"]
    subprocess.run([*command, "-o", str(tmp_path / "julia.ptx")], check=True)
    assert ".target sm_80" in (tmp_path / "julia.ptx").read_text()
    done = subprocess.run([*command, "--emit", "x86"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cpp, ll, ptx" in done.stderr


def test_grids_cover_every_threadgroup_once():
    grid, group = (70, 70000, 140000), (32, 1, 1)
    seen = 0
    for launch in launches_of(grid, group):
        blocks = launch.dimensions[:3]
        assert max(blocks[1:]) <= 65535
        seen += blocks[0] * blocks[1] * blocks[2]
    assert seen == 3 * 70000 * 140000
    (deep,) = launches_of((1, 1, 256), (1, 1, 256))
    assert deep.dimensions == (1, 1, 1, 256, 1, 1)


@pytest.mark.parametrize(("floats", "asked"), [(12288, 0), (12289, 49156), (20480, 81920)])
def test_large_threadgroup_variables_are_asked_for(floats, asked):
    text = ptx(f"""
        kernel void f(device float* x, uint i [[thread_index_in_threadgroup]]) {{
          threadgroup float small[32], large[{floats} - {0 if asked else 32}];
          small[i] = x[i], large[i * 8] = x[i + 1];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          x[i] = small[i ^ 1] + large[i ^ 8];
        }}""")
    declared = dict(re.findall(r"\.shared \.align 16 \.b8 \S*(small|large)\[(\d*)\]", text))
    assert declared == {"small": "128", "large": "" if asked else str(4 * (floats - 32))}
    for how in ("\t.shared", ".weak .shared"):  # of a function, of a template
        as_they_were = text.replace("[];", f"[{asked}];").replace(".extern .shared", how)
        assert use_dynamic_shared_memory(as_they_were)[1] == asked
