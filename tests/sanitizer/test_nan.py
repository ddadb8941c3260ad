"""Checked launches that look for operations which make NaN of numbers."""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
NUMBERS = np.array([0, -0.0, 1, -1, 0.5, 3, -2.5, 1e30, -1e30, 1e-40, np.inf, -np.inf], np.float32)
UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "cospi", "exp", "exp10",
    "exp2", "fabs", "floor", "fract", "log", "log10", "log2", "rint", "round", "rsqrt", "sin", "sinh",
    "sinpi", "sqrt", "tan", "tanh", "tanpi", "trunc",
)  # fmt: skip
BINARY = ("atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "pow", "powr", "nextafter")
EXPRESSIONS = [
    *(f"{name}(a)" for name in UNARY), *(f"{name}(a, b)" for name in BINARY),
    "a + b", "a - b", "a * b", "a / b", "fma(a, b, a)", "float(half(a) * half(b))", "a > 0 ? sqrt(a) : 1",
    "normalize(float3(a, b, 1)).x", "(float4(a, b, 1, 2) / float4(b, 1, 2, 3)).x", "mix(a, b, 0.5f)",
    "length(float2(a, b))", "sin(float2(a, 1)).x", "clamp(a, 0.0f, 1.0f)", "smoothstep(0.0f, 1.0f, a)",
]  # fmt: skip


def kernel_of(expressions):
    lines = "\n".join(f"  y[{k}u * n + i] = {text};" for k, text in enumerate(expressions))
    return f"""{HEADER}kernel void f(device float* y, device const float* x, device const float* z,
                   uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {{
  const float a = x[i], b = z[i];
{lines}
}}"""


def check(expressions):
    """The expressions with a finding, and those with a result that is NaN, of numbers without NaN."""
    text = kernel_of(expressions)
    first = text.splitlines().index(f"  y[0u * n + i] = {expressions[0]};") + 1
    a, b = (x.reshape(-1).copy() for x in np.meshgrid(NUMBERS, NUMBERS))
    y = np.zeros((len(expressions), a.size), np.float32)
    with mtl.checking(raises=False, nan=True) as findings:
        mtl.library(text).f(y, a, b, threads=a.size)
    assert {finding.kind for finding in findings} <= {"nan"}
    reported = {expressions[finding.accesses[0].line - first] for finding in findings}
    return reported, {text for text, row in zip(expressions, y, strict=True) if np.isnan(row).any()}


@pytest.mark.slow
def test_a_finding_for_each_expression_that_makes_nan_and_for_no_other():
    reported, undefined = check(EXPRESSIONS)
    assert reported == undefined
    assert len(reported) > 20 < len(EXPRESSIONS) - len(reported)


def test_functions_whose_steps_make_nan_that_is_not_used():
    reported, undefined = check(["a > 0 ? sqrt(a) : 1", "exp(a)", "sqrt(float2(a, 1)).x", "a / b"])
    assert reported == undefined == {"sqrt(float2(a, 1)).x", "a / b"}


def test_the_operands_and_the_line():
    text = HEADER + (
        "kernel void f(device float* x, uint i [[thread_position_in_grid]])\n{ x[i] = x[i] / (x[i] - 2); }"
    )
    x = np.array([1, 3, 4], np.float32)
    lib = mtl.library(text)
    with mtl.checking(nan=True):
        lib.f(x, threads=3)
    x = np.array([1, np.inf, np.nan, 2], np.float32)
    with mtl.checking(nan=True), pytest.raises(mtl.SanitizerError) as caught:
        lib.f(x, threads=4)
    (finding,) = caught.value.findings
    assert finding.summary == "NaN made of numbers: (inf, inf)"
    assert finding.accesses[0].thread == (1, 0, 0)
    assert caught.value.line == 4
    assert "computed NaN of (inf, inf)\n      { x[i] = x[i] / (x[i] - 2); }\n" in str(caught.value)


def test_only_on_request():
    lib = mtl.library("kernel void f(device float* x) { x[0] = x[1] / x[2]; }")
    x = np.zeros(3, np.float32)
    with mtl.checking():
        lib.f(x, threads=1)
    assert np.isnan(x[0])
