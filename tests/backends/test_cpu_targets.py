"""CPUs that are not this: kernels compiled for them, and our runtime."""

import functools
import re
from pathlib import Path

import numpy as np
import object_files
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import vector
from metalloid.backends.cpu.runtime import native_library
from metalloid.cli.main import main

PACKAGE = Path(mtl.__file__).parent
TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] = x[i] * 2 + 1; }
kernel void total(device float* x, device atomic_uint& n, uint i [[thread_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
  threadgroup float shared[64];
  shared[t] = simd_sum(x[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = sin(shared[63 - t]) + half(shared[0]);
  atomic_fetch_add_explicit(&n, 1, memory_order_relaxed);
}
kernel void talks(device float* x, uint i [[thread_position_in_grid]]) { assert(x[i] > 0); x[i] = 1; }
"""
#: Whose registers code has, and how many threads run at a time.
REGISTERS = {
    "x86-64-v2": (r"%xmm", r"%[yz]mm", 8), "x86-64-v3": (r"%ymm", r"%zmm", 16),
    "x86-64-v4": (r"%zmm", r"%none", 32), "aarch64": (r"\bv\d+\.4s", r"%none", 8),
    "aarch64-macos": (r"\bv?\w+\.4s|\bq\d+", r"%none", 8),
}  # fmt: skip
#: From the C library, or the system's own.
OF_THE_SYSTEM = {"memcpy", "memmove", "memset", "bzero"}


@functools.cache
def runtime_names(target):
    """The object files of our runtime for a target, and the names that they define."""
    objects = [object_files.read(code) for code in native_library.objects(target).values()]
    return objects, set().union(*(one.defined for one in objects))


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=pytest.mark.slow if target in ("x86-64-v2", "x86-64-v4") else ())
        for target in REGISTERS
    ],
)
def test_code_is_for_the_target(target):
    lib = mtl.library(TEXT, target=f"cpu:{target}")
    has, has_not, threads = REGISTERS[target]
    stage = "arm64" if "aarch64" in target else "x86"
    with mtl.config.scope(cpu_engine="simd"):
        kernel = lib.twice
    assert list(kernel.asm) == ["cpp", "ll", stage]
    assert re.search(has, kernel.asm[stage])
    assert not re.search(has_not, kernel.asm[stage])
    assert kernel.engine == f"simd: {threads} threads at a time"
    with pytest.raises(
        mtl.DeviceUnavailable, match=rf"\[cpu:{target}\] is a target to compile for"
    ):
        kernel(np.zeros(4, np.float32), threads=4)


def test_masks_are_as_long_as_registers():
    """With AVX-512: LLVM joins and parts longer ones, which only short numbers are worth."""
    text = """
    #include <metal_stdlib>
    kernel void steps(device KIND* y, uint i [[thread_position_in_grid]]) {
      int n = 0;
      for (uint x = i + 1; x != 1; n++) x = x & 1 ? 3 * x + 1 : x / 2;
      y[i] = n;
    }"""
    with mtl.config.scope(cpu_engine="simd"):
        ints, bytes_ = (
            mtl.library(text.replace("KIND", kind), target="cpu:x86-64-v4").steps.asm
            for kind in ("int", "uchar")
        )
    assert "+avx512bw" not in ints["ll"]
    assert "+avx512bw" in bytes_["ll"]
    assert "kortestw" in ints["x86"]
    assert "kunpck" not in ints["x86"]


def check_objects(lib, names, target):
    """Check the format of kernels, and that every name they need is defined."""
    is_mac = target == "aarch64-macos"
    _, offered = runtime_names("aarch64-macos" if is_mac else "aarch64-linux-musl")
    for name in names:
        object_file = object_files.read(lib.function(name)._program.kernel.code.read_bytes())
        assert object_file[:3] == ("Mach-O" if is_mac else "ELF", "aarch64", True)
        assert "mtl_kernel" in object_file.defined, name
        assert object_file.undefined <= offered | OF_THE_SYSTEM, name


@pytest.mark.parametrize("engine", ["simd", "reference"])
@pytest.mark.parametrize("target", ["aarch64", "aarch64-macos"])
def test_objects_for_arm64(target, engine):
    with mtl.config.scope(cpu_engine=engine):
        lib = mtl.library(TEXT, target=f"cpu:{target}")
        check_objects(lib, lib.functions, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["aarch64", "aarch64-macos"])
@pytest.mark.parametrize("file", ["cli/selftest.metal", "bench/kernels.metal", "cli/julia.metal"])
def test_kernels_of_ours_for_arm64(file, target):
    lib = mtl.library(path=PACKAGE / file, target=f"cpu:{target}")
    check_objects(lib, lib.functions, target)


def test_the_runtime_for_macos():
    objects, offered = runtime_names("aarch64-macos")
    assert {one[:3] for one in objects} == {("Mach-O", "aarch64", True)}
    called = set(
        re.findall(r'_function\(\s*library, "(\w+)"', Path(native_library.__file__).read_text())
    )
    assert len(called) > 8
    assert called <= offered
    here = {one for _, names in [runtime_names("aarch64-linux-musl")] for one in names}
    assert offered == here


def test_lanes_by_instructions():
    assert vector.lanes("AVX-512") == ((32, 16, 8), 1)
    assert vector.lanes("AVX2") == ((16, 8), 32)
    assert vector.lanes("NEON") == vector.lanes("SSE4.2") == ((8,), 32)


def test_a_cpu_that_is_none():
    with pytest.raises(
        mtl.DeviceUnavailable, match=r"unknown CPU target 'z80'; choose one of x86-64-v2"
    ):
        mtl.library("", target="cpu:z80")


def test_the_command(tmp_path, capsys):
    file = tmp_path / "k.metal"
    file.write_text(TEXT)
    out = tmp_path / "out"
    out.mkdir()
    assert main(["compile", str(file), "--target", "cpu:aarch64", "-o", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "talks.arm64",
        "total.arm64",
        "twice.arm64",
    ]
    options = ["--target", "cpu:x86-64-v3", "--kernel", "twice"]
    assert main(["compile", str(file), *options]) == 0
    assert "%ymm" in capsys.readouterr().out
    assert main(["compile", str(file), *options, "--emit", "ptx"]) == 1
    assert "--emit must be one of cpp, ll, x86, got 'ptx'" in capsys.readouterr().err
