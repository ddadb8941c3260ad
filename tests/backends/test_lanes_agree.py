"""Branches on comparisons of an index, in simdgroups that agree, that do not, and on the brink."""

import operator

import numpy as np
import pytest

import metalloid as mtl

HOW = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
INDICES = {
    "t": lambda i, t: t, "i": lambda i, t: i, "(t & 31)": lambda i, t: t & 31,
    "(t / 4)": lambda i, t: t // 4, "int(t)": lambda i, t: t, "(int(t) - 40)": lambda i, t: t - 40,
    "(100 - int(t))": lambda i, t: 100 - t, "(2 * i)": lambda i, t: 2 * i,
}  # fmt: skip
CASES = [(index, how) for index in INDICES for how in HOW]

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device int* out, constant int& given, uint i [[thread_position_in_grid]],
              uint n [[threads_per_grid]], uint t [[thread_position_in_threadgroup]]) {{
{tests}
}}
kernel void g(device int* out, constant int& given, uint i [[thread_position_in_grid]],
              uint n [[threads_per_grid]], uint t [[thread_position_in_threadgroup]]) {{
  threadgroup_barrier(mem_flags::mem_device);
{tests}
  threadgroup_barrier(mem_flags::mem_device);
  if (t < uint(given)) out[i] += 1;
}}
"""


@pytest.fixture(scope="module")
def lib():
    tests = "\n".join(
        f"  if ({index} {how} {'given' if 'int' in index else 'uint(given)'}) "
        f"out[{row} * n + i] += i * {row + 1};"
        for row, (index, how) in enumerate(CASES)
    )
    return mtl.library(TEXT.format(tests=tests))


@pytest.mark.parametrize("group", [64, 96, 50])
@pytest.mark.parametrize("name", ["f", "g"])
def test_comparisons(lib, name, group):
    n = 3 * group
    i = np.arange(n)
    t = i % group
    for given in (0, 1, 5, 31, 32, 33, 63, 64, 100, 191, 1000):
        out = np.zeros((len(CASES), n), np.int32)
        lib[name](out, given, threads=n, group_size=group)
        for row, (index, how) in enumerate(CASES):
            expected = np.where(HOW[how](INDICES[index](i, t), given), i * (row + 1), 0)
            if name == "g" and row == 0:
                expected = expected + (t < given)
            assert np.array_equal(out[row], expected), (index, how, given)
