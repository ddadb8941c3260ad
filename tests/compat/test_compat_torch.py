"""`compat.torch` as programs use `torch.mps.compile_shader`."""

import numpy as np
import pytest

from metalloid.compat import torch as compat
from metalloid.compat.torch import compile_shader, load_metallib

torch = pytest.importorskip("torch", reason="torch is not installed")

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void full(device float* out, constant float& value, uint i [[thread_position_in_grid]])
{ out[i] = value; }
kernel void scale(device float* x, constant int* by, constant uint& last,
                  uint2 i [[thread_position_in_grid]], uint2 size [[threads_per_grid]])
{ x[i.y * size.x + i.x] *= by[i.y] + last; }
kernel void bits(device half* out, constant half& value, uint i [[thread_position_in_grid]])
{ out[i] = value; }
template <typename T>
kernel void twice(device T* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
template [[host_name("twice_bfloat")]] kernel void twice<bfloat>(device bfloat*, uint);
"""


@pytest.fixture(scope="module")
def lib():
    return compile_shader(TEXT)


def test_as_in_the_documentation(lib):
    x = torch.zeros(16)
    assert lib.full(x, 3.14) is None
    assert torch.equal(x, torch.full((16,), 3.14))


def test_threads_and_lists(lib):
    x = torch.ones(3, 5)
    lib.scale(x, [1, 2, 3], 10, threads=(5, 3), group_size=(5, 1))
    assert x[:, 0].tolist() == [11, 12, 13]


def test_types_are_the_parameters(lib):
    x = torch.zeros(4, dtype=torch.uint8)  # memory for two halfs
    lib.bits(x, 1.5, threads=2, arg_casts={1: "fp16"})
    assert x.view(torch.float16).tolist() == [1.5, 1.5]
    y = torch.ones(5, dtype=torch.bfloat16, requires_grad=True)
    lib.twice_bfloat(y)
    assert y.tolist() == [2.0] * 5


def test_views_begin_where_they_begin(lib):
    x = torch.zeros(10)
    lib.full(x[5:], 1.0)
    assert x.tolist() == [0.0] * 5 + [1.0] * 5
    y = torch.zeros(4, 4)
    lib.full(y.t()[1:], 2.0, threads=3)  # the memory as it lies
    assert y.view(-1).tolist() == [0.0] + [2.0] * 3 + [0.0] * 12


def test_names_and_limits(lib):
    assert {"full", "scale", "twice_bfloat"} <= set(dir(lib))
    assert lib.full.max_threads_per_threadgroup == 1024
    assert lib.full.thread_execution_width == 32
    with pytest.raises(AttributeError, match="unknown kernel 'ful'"):
        _ = lib.ful


def test_errors():
    with pytest.raises(SyntaxError, match="unknown type name 'flout'"):
        compile_shader("kernel void f(device flout* x) {}")
    lib = compile_shader("kernel void f(constant int& x) {}")
    with pytest.raises(RuntimeError, match="Number of threads is undefined"):
        lib.f(3)
    with pytest.raises(RuntimeError, match="wrong dimension"):
        lib.f(3, threads=(4, 4), group_size=4)
    with pytest.raises(ValueError, match="Unsupported cast 'fp8'"):
        lib.f(3, threads=1, arg_casts="fp8")
    with pytest.raises(TypeError):
        lib.f(threads=1)


def test_libraries_of_files(tmp_path):
    (tmp_path / "beside.metal").write_text(TEXT)
    (tmp_path / "beside.metallib").write_bytes(b"MTLB, for Apple's GPUs")
    (tmp_path / "alone.metallib").write_bytes(b"MTLB")
    text = tmp_path / "beside.metal"
    for source in (
        TEXT.encode(),
        bytearray(TEXT.encode()),
        str(text),
        text.with_suffix(".metallib"),
    ):
        x = torch.zeros(8)
        load_metallib(source).full(x, 2.0)
        assert x.tolist() == [2.0] * 8
    with pytest.raises(TypeError, match="expected bytes or path, got int"):
        load_metallib(3)
    with pytest.raises(RuntimeError, match="holds code for Apple GPUs"):
        load_metallib(b"MTLB...")
    for name in ("alone.metallib", "nowhere.metallib"):
        with pytest.raises(RuntimeError, match="no MSL source for"):
            load_metallib(tmp_path / name)


def test_kernels_report_errors_of_their_own():
    lib = compile_shader("""
    #include <c10/metal/error.h>
    kernel void check(device int* x, device c10::metal::ErrorMessages* errors,
                      uint i [[thread_position_in_grid]])
    { if (x[i] < 0) { TORCH_REPORT_ERROR(errors, "negative at ", long(i)); } }
    """)
    x = torch.arange(10, dtype=torch.int32)
    lib.check(x, error_buf_idx=1)
    with pytest.raises(RuntimeError, match="negative at 7"):
        lib.check(torch.where(x == 7, -1, x), error_buf_idx=1)


def test_installed_it_serves_unchanged_programs():
    original = torch.mps.compile_shader
    compat.install()
    compat.install()
    try:
        x = torch.zeros(8)
        torch.mps.compile_shader(TEXT).full(x, 1)
        assert np.array_equal(x.numpy(), np.ones(8))
        assert torch.mps.load_metallib is load_metallib
    finally:
        compat.uninstall()
    assert torch.mps.compile_shader is original
