"""Faults, and reasons for the reference engine, name the line of the kernel's text."""

import sys

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void wild(device int* out, device const uint* p, uint i [[thread_position_in_grid]]) {
    out[i] = 1;
    out[i + p[0] * 1000000000ul] = 3;
}
kernel void divide(device int* out, device const int* p, uint i [[thread_position_in_grid]]) {
    out[i] = int(i) /
        p[0];
}
kernel void lane(device int* out, device const uint* p, uint i [[thread_position_in_grid]]) {
    int own = out[i];
    out[i] = simd_shuffle(own, p[0]);
}
void far(device int* p, ulong index) {
    p[index] = 3;
}
kernel void helper(device int* out, device const uint* p, threadgroup int* shared,
                   uint i [[thread_position_in_threadgroup]]) {
    shared[i] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = shared[i ^ 1];
    far(out, p[0] * 1000000000ul);
}
"""
LINES = {"wild": 6, "divide": 9, "lane": 14, "helper": 17}

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="line tables of Mach-O objects are not read"
)


@linux_only
@pytest.mark.parametrize("engine", ["simd", "reference"])
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("threads", [64, 61])
@pytest.mark.parametrize("bounds", ["checked", "unchecked"])
@pytest.mark.sample(4)
def test_faults_name_their_line(name, bounds, threads, engine, tmp_path, monkeypatch):
    file = tmp_path / "faults.metal"
    file.write_text(TEXT)
    monkeypatch.setattr(mtl.config, "cpu_engine", engine)
    kernel = getattr(mtl.library(path=file, device="cpu", bounds=bounds), name)
    out = np.zeros(64, np.int32)
    given = [out, np.full(1, 0 if name == "divide" else 99, np.uint32)]
    if name == "divide":
        given[1] = given[1].view(np.int32)
    if name == "helper":
        given.append(mtl.threadgroup_memory(256))
    with pytest.raises(mtl.KernelFault) as raised:
        kernel(*given, threads=threads, group_size=threads)
    assert (raised.value.file, raised.value.line) == (str(file), LINES[name])
    assert f"{file}:{LINES[name]}: " in str(raised.value)


@linux_only
def test_kernels_that_are_no_files_have_lines():
    lib = mtl.library(TEXT, device="cpu", bounds="unchecked")
    with pytest.raises(mtl.KernelFault, match=r"\[wild\] program_source:6: access to memory"):
        lib.wild(np.zeros(64, np.int32), np.full(1, 99, np.uint32), threads=64)


def test_the_reason_for_the_reference_engine_names_line_function_and_pass(monkeypatch):
    text = """
    float read(device volatile float* p, uint i) {
        return p[i];
    }
    kernel void k(device float* out, device volatile float* p, uint i [[thread_position_in_grid]]) {
        out[i] = read(p, i);
    }
    """
    monkeypatch.setattr(mtl.config, "cpu_engine", "simd")
    engine = mtl.library(text, device="cpu").k.engine
    assert engine == (
        "reference: a loop over threads "
        "(no vector form: a volatile access; program_source:3, in read; pass linearize)"
    )
