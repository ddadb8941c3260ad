"""Checked launches that look for what MSL defines and is seldom meant."""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

SHIFTS = """#include <metal_stdlib>
using namespace metal;
kernel void f(device int* y, device const int* n, uint i [[thread_position_in_grid]])
{
  y[6 * i] = 1 << n[i];
  y[6 * i + 1] = uchar(200) >> uchar(n[i]);
  y[6 * i + 2] = int(7ul << n[i]);
  y[6 * i + 3] = (int3(-1, 2, 3) >> int3(0, n[i], 1)).y;
  y[6 * i + 4] = (ushort2(1, 2) << ushort(n[i])).x;
  y[6 * i + 5] = 1 << (n[i] & 31);
}
"""


@pytest.mark.parametrize(("amount", "lines"), [
    (0, []), (15, []), (16, [9]), (31, [9]), (32, [5, 6, 8, 9]), (63, [5, 6, 8, 9]),
    (64, [5, 6, 7, 8, 9]), (-1, [5, 6, 7, 8, 9]),
])  # fmt: skip
def test_shifts_by_the_width_or_more(amount, lines):
    n = np.array([3, amount], np.int32)
    y = np.zeros(12, np.int32)
    with mtl.checking(raises=False) as findings:
        mtl.library(SHIFTS).f(y, n, threads=2)
    assert {finding.kind for finding in findings} <= {"shift"}
    assert sorted(finding.accesses[0].line for finding in findings) == lines
    assert {finding.accesses[0].thread for finding in findings} <= {(1, 0, 0)}
    assert y[6] == np.left_shift(np.int32(1), amount & 31)  # the low bits, as without checks


def test_the_report_of_a_shift():
    text = "kernel void f(device int* y) { y[0] = y[1] << y[2]; }"
    lib = mtl.library(text)
    y = np.array([0, 1, 33], np.int32)
    with mtl.checking(), pytest.raises(mtl.SanitizerError) as caught:
        lib.f(y, threads=1)
    assert str(caught.value) == (
        "[f] the sanitizer found a defect.\n"
        "shift beyond the width of the type: a number of 32 bits by 33\n"
        "  program_source:1: thread (0, 0, 0) of threadgroup (0, 0, 0) shifted by 33\n"
        f"      {text}\n"
        f"      {' ' * text.index('<<')}^\n"
        "  MSL takes the low bits of the amount only. Compare it with the width first, or write the "
        "mask if that is meant."
    )


TEXELS = """#include <metal_stdlib>
using namespace metal;
kernel void f(texture2d<float, access::read> s, texture2d<float, access::write> t, texture1d<float, access::write> row,
              device float* y, uint i [[thread_position_in_grid]])
{
  y[i] = s.read(uint2(i, 1)).x;
  t.write(float4(1), uint2(0, i));
  row.write(float4(2), i);
}
"""


@pytest.mark.parametrize(
    ("threads", "lines"), [(2, []), (3, [7]), (4, [7]), (5, [6, 7]), (9, [6, 7, 8])]
)
def test_texels_outside(threads, lines):
    t, row = np.ones((2, 4), np.float32), np.ones(8, np.float32)
    y = np.full(9, 5, np.float32)
    source, image, line = mtl.Texture(t), mtl.Texture(t.copy()), mtl.Texture(row, kind="1d")
    with mtl.checking(raises=False) as findings:
        mtl.library(TEXELS).f(source, image, line, y, threads=threads)
    assert {finding.kind for finding in findings} <= {"texel"}
    assert sorted(finding.accesses[0].line for finding in findings) == lines
    assert y[: min(threads, 4)].tolist() == [1] * min(threads, 4)
    assert not y[4:threads].any()


def test_programs_that_rely_on_it_leave_it_out():
    y = np.array([0, 1, 33], np.int32)
    with mtl.checking(suspicious=False):
        mtl.library("kernel void f(device int* y) { y[0] = y[1] << y[2]; }").f(y, threads=1)
        mtl.library(TEXELS).f(
            *(mtl.Texture(np.ones((2, 4), np.float32)) for _ in range(2)), mtl.Texture(np.ones(8, np.float32), kind="1d"),
            np.zeros(9, np.float32), threads=9,
        )  # fmt: skip
    assert y[0] == 2
