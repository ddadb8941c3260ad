"""array<T, N> in device, constant and threadgroup memory: elements are in the object's space."""

import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"

#: Only what is in the space named overloads or binds.
TEXT = """
struct Rows {{ array<device float*, 2> to; array<float, 4> weights; }};

int space_of(const device float*) {{ return 1; }}
int space_of(const constant float*) {{ return 2; }}
int space_of(const threadgroup float*) {{ return 3; }}
int space_of(const thread float*) {{ return 4; }}

template <class T> float total({space} const T& values) {{
  float sum = 0;
  for ({space} const float& value : values) sum += value;
  return sum;
}}

kernel void f(device int* spaces, device float* sums, {parameter}, uint i [[thread_position_in_grid]])
{{
  {local}
  {space} float& r = a[i];
  {space} float* p = &a[1];
  {space} float* all = a.data();
  {space} float &first = a.front(), &last = a.back();
  spaces[i] = space_of(&a[i]);
  sums[i] = r + *p + all[2] + first + last + (a.end() - a.begin()) + total(a);
}}
"""
FORMS = {
    "device": ("device array<float, 4>& a", "", 1),
    "constant": ("constant array<float, 4>& a", "", 2),
    "threadgroup": (
        "device array<float, 4>& given",
        "threadgroup array<float, 4> a; a[i] = given[i]; "
        "threadgroup_barrier(mem_flags::mem_threadgroup);",
        3,
    ),
    "thread": ("device array<float, 4>& given", "array<float, 4> a = given;", 4),
}


@pytest.mark.parametrize("space", FORMS)
def test_elements_are_in_the_space_of_the_array(space):
    parameter, local, number = FORMS[space]
    text = TEXT.format(space=space, parameter=parameter, local=local)
    a = np.array([1.5, -2, 4, 8], np.float32)
    spaces, sums = np.zeros(4, np.int32), np.zeros(4, np.float32)
    mtl.library(HEADER + text).f(spaces, sums, a, threads=4)
    np.testing.assert_array_equal(spaces, number)
    np.testing.assert_array_equal(sums, a + a[1] + a[2] + a[0] + a[3] + 4 + a.sum())


def test_an_array_of_pointers_in_a_struct():
    kernel = mtl.library(
        HEADER
        + """
struct Rows { array<device float*, 2> to; array<float, 4> weights; };
kernel void f(constant Rows& rows, uint i [[thread_position_in_grid]])
{
  device float* row = rows.to[i & 1];
  constant float* weights = rows.weights.begin();
  constant float& weight = rows.weights[i];
  row[i] = weight * weights[3 - i];
}
"""
    ).f
    weights = np.array([2, 3, 5, 7], np.float32)
    even, odd = np.zeros(4, np.float32), np.zeros(4, np.float32)
    rows = mtl.ArgumentBuffer(kernel, "rows", {"to": [even, odd], "weights": weights})
    kernel(rows, threads=4)
    np.testing.assert_array_equal(even + odd, weights * weights[::-1])
    np.testing.assert_array_equal(odd[::2], 0)
    np.testing.assert_array_equal(even[1::2], 0)


def test_tables_of_the_program_and_values():
    y = np.zeros(6, np.int32)
    mtl.library(
        HEADER
        + """
constant array<int, 3> table = {10, 20, 30};
array<int, 2> swapped(array<int, 2> a) { return {a[1], a[0]}; }
kernel void f(device int* y, uint i [[thread_position_in_grid]])
{
  constant int* p = &table[i];
  const array<int, 2> both = {*p, table.back()};
  y[2 * i] = swapped(both)[0];
  y[2 * i + 1] = swapped({int(i), *p})[0] + both[1];
}
"""
    ).f(y, threads=3)
    np.testing.assert_array_equal(y, [30, 40, 30, 50, 30, 60])
