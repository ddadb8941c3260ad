"""Function constants: every scalar and vector type, with and without a value."""

import numpy as np
import pytest
from msl_types import DTYPES, FLOATS, INTEGERS, SCALARS, memory_of, memory_type, parse, vector
from sheets import HEADER

import metalloid as mtl

LANES = (1, 2, 3, 4)


def library(element):
    """A kernel that stores four constants, of each width, and whether they have values."""
    text, parameters, body = "", [], ""
    for j, lanes in enumerate(LANES):
        type_ = vector(element, lanes)
        parameters.append(f"device {memory_type(type_)}* y{j}")
        text += f"constant {type_} c{j} [[function_constant({j})]];\n"
        text += f"constant bool has{j} = is_function_constant_defined(c{j});\n"
        body += f"    if (has{j}) y{j}[0] = {memory_of(type_, f'c{j}')};\n"
        body += f"    defined[{j}] = is_function_constant_defined(c{j});\n"
    return mtl.library(
        f"{HEADER}{text}kernel void f({', '.join(parameters)}, device int* defined) {{\n{body}}}"
    )


def values_of(element):
    """Values that no other type could hold, where there are such."""
    if element in INTEGERS:
        info = np.iinfo(DTYPES[element])
        return [int(info.max), int(info.min), 5, int(info.max) - 1]
    return [1.0078125, -0.0, 0.5, float("inf")] if element in FLOATS else [True, False, True, True]


@pytest.mark.parametrize("element", SCALARS)
@pytest.mark.sample(2)
def test_every_type(element):
    lib, values = library(element), values_of(element)
    constants = [values[0], *(tuple(values[:lanes]) for lanes in LANES[1:])]
    for keys in (range(4), ("c0", "c1", "c2", "c3")):
        outputs = [parse(vector(element, lanes)).empty(1) for lanes in LANES]
        defined = np.full(4, 5, np.int32)
        lib.function("f", dict(zip(keys, constants, strict=True)))(*outputs, defined, threads=1)
        assert defined.tolist() == [1, 1, 1, 1]
        for lanes, y in zip(LANES, outputs, strict=True):
            assert y.tobytes() == np.array(values[:lanes], DTYPES[element]).tobytes()


@pytest.mark.parametrize("element", ["float", "bool", "ulong"])
@pytest.mark.sample(1)
def test_some_without_a_value(element):
    lib, value = library(element), values_of(element)[0]
    outputs = [parse(vector(element, lanes)).empty(1) for lanes in LANES]
    before = [y.tobytes() for y in outputs]
    defined = np.full(4, 5, np.int32)
    lib.function("f", {"c2": (value,) * 3})(*outputs, defined, threads=1)
    assert defined.tolist() == [0, 0, 1, 0]
    assert [y.tobytes() == b for y, b in zip(outputs, before, strict=True)] == [
        True,
        True,
        False,
        True,
    ]


CHOICES = f"""{HEADER}
constant bool wide [[function_constant(0)]];
constant int count [[function_constant(3)]];
constant float scale [[function_constant(1)]];
constant int copies = is_function_constant_defined(count) ? count : 2;
constant bool scaled = is_function_constant_defined(scale);
template <typename T> T twice(T x) {{ return wide ? T(2) * x : x; }}
kernel void f(device float* y, uint i [[thread_position_in_grid]]) {{
    float sum = 0;
    for (int k = 0; k < copies; ++k) sum += twice(float(i));
    if (scaled) sum *= scale;
    y[i] = sum;
}}
"""


@pytest.mark.parametrize(
    ("constants", "factor"),
    [
        ({"wide": True}, 4), ({"wide": False}, 2), ({"wide": True, "count": 5}, 10), ({0: False, 3: 0}, 0),
        ({"wide": True, "scale": 0.25}, 1), ({"wide": np.bool_(True), "count": np.int64(3), 1: np.float32(0.5)}, 3),
    ],
)  # fmt: skip
def test_constants_specialise_one_text(constants, factor):
    y = np.zeros(10, np.float32)
    mtl.library(CHOICES).function("f", constants)(y, threads=10)
    np.testing.assert_array_equal(y, factor * np.arange(10))


def test_a_text_is_checked_without_values():
    """Neither a division by a constant nor a branch on it is worth a warning then."""
    lib = mtl.library(f"""{HEADER}
    constant int n [[function_constant(100 + 1)]];
    constant float4 v [[function_constant(0)]];
    constant constexpr int width [[function_constant(1)]];
    kernel void f(device int* y, uint i [[thread_position_in_grid]]) {{
        int lanes[width + 1] = {{7}};
        switch (n) {{ case 3: y[i] = 10 / n + 10 % n + int(v.y) + lanes[0] + width; break; }}
    }}""")
    assert lib.warnings == ()
    y = np.zeros(1, np.int32)
    lib.function("f", {101: 3, "v": (1, 2, 3, 4), "width": 5})(y, threads=1)
    assert y.tolist() == [3 + 1 + 2 + 7 + 5]


def test_specialisations_coexist():
    lib = mtl.library(CHOICES)
    y = np.zeros(4, np.float32)
    kernels = [lib.function("f", {"wide": False, "count": n}) for n in range(4)]
    for n, kernel in enumerate(kernels):
        kernel(y, threads=4)
        np.testing.assert_array_equal(y, n * np.arange(4))
    assert lib.function("f", {"wide": False, "count": 2}) is kernels[2]


CONDITIONAL = """
constant bool has_x [[function_constant(0)]];
constant float scale [[function_constant(1)]];
constant bool has_y = !has_x;
constant bool is_large = scale > 1.5f;
struct Weights { float factor; device float *of; };
kernel void f(device float *out [[buffer(0)]],
              device const float *x [[buffer(1), function_constant(has_x)]],
              constant float &y [[buffer(1), function_constant(has_y)]],
              constant Weights &weights [[buffer(2), function_constant(is_large)]],
              texture2d<float> image [[texture(0), function_constant(is_large)]],
              threadgroup float *shared [[threadgroup(0), function_constant(is_large)]])
{
    out[0] = has_x ? x[0] : y;
    if (is_large) {
        shared[0] = image.read(uint2(0)).x;
        out[0] += weights.factor * weights.of[0] + shared[0];
    }
}
"""


def test_parameters_that_constants_leave_out():
    lib = mtl.library(HEADER + CONDITIONAL)
    out, x = np.zeros(1, np.float32), np.array([3], np.float32)
    lib.function("f", {"has_x": True})(out, x, threads=1)
    assert out == 3
    lib.f(out, 4.0, threads=1)  # without a value has_x is false
    assert out == 4
    large = lib.function("f", {"has_x": False, "scale": 2})
    assert [p.name for p in large.signature.arguments] == ["out", "y", "weights", "image"]
    weights = {"factor": 10, "of": x}
    image = np.full((1, 1, 4), 0.5, np.float32)
    large(out, 4.0, weights, image, mtl.threadgroup_memory(4), threads=1)
    assert out == 34.5


def test_values_for_parameters_left_out_are_ignored_by_name_only():
    kernel = mtl.library(HEADER + CONDITIONAL).function("f", {"has_x": True})
    out, x = np.zeros(1, np.float32), np.array([3], np.float32)
    kernel(out=out, x=x, y=5.0, weights=None, threads=1)
    assert out == 3
    with pytest.raises(mtl.ArgumentError, match="expects 2 arguments, got 3"):
        kernel(out, x, 5.0, threads=1)
    with pytest.raises(mtl.ArgumentError, match="has no parameter 'z'"):
        kernel(out, x, z=5.0, threads=1)
