"""Adjoints of kernels, and central differences of the same kernels in double precision."""

import re
from pathlib import Path

import numpy as np

import metalloid as mtl
from metalloid.differentiate import vjp

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
_DOUBLES = ("arithmetic", "exponential", "hyperbolic", "inverse", "trigonometric")
_OTHERS = """
namespace metal {
typedef vec<double, 2> double2;
typedef vec<double, 3> double3;
typedef vec<double, 4> double4;
METAL_FUNC double abs(double x) { return fabs(x); }
METAL_FUNC double rsqrt(double x) { return 1 / sqrt(x); }
METAL_FUNC double exp10(double x) { return pow(double(10), x); }
METAL_FUNC double powr(double x, double y) { return pow(x, y); }
METAL_FUNC double fract(double x) { return x - floor(x); }
METAL_FUNC double fmod(double x, double y) { return x - y * trunc(x / y); }
METAL_FUNC double max(double x, double y) { return x > y ? x : y; }
METAL_FUNC double min(double x, double y) { return x < y ? x : y; }
METAL_FUNC double fmax(double x, double y) { return x > y ? x : y; }
METAL_FUNC double fmin(double x, double y) { return x < y ? x : y; }
METAL_FUNC double fdim(double x, double y) { return x > y ? x - y : 0; }
METAL_FUNC double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
METAL_FUNC double step(double a, double x) { return x < a ? 0 : 1; }
METAL_FUNC double clamp(double x, double a, double b) { return x < a ? a : x > b ? b : x; }
METAL_FUNC double saturate(double x) { return clamp(x, double(0), double(1)); }
METAL_FUNC double mix(double x, double y, double a) { return x + (y - x) * a; }
METAL_FUNC double sinpi(double x) { return sin(double(3.14159265358979323846l) * x); }
METAL_FUNC double cospi(double x) { return cos(double(3.14159265358979323846l) * x); }
METAL_FUNC double dot(double2 v, double2 w) { return v.x * w.x + v.y * w.y; }
METAL_FUNC double dot(double3 v, double3 w) { return v.x * w.x + v.y * w.y + v.z * w.z; }
METAL_FUNC double dot(double4 v, double4 w) { return dot(v.xy, w.xy) + dot(v.zw, w.zw); }
METAL_FUNC double length(double2 v) { return sqrt(dot(v, v)); }
METAL_FUNC double length(double3 v) { return sqrt(dot(v, v)); }
METAL_FUNC double length(double4 v) { return sqrt(dot(v, v)); }
}
"""
_METAL = Path(mtl.__file__).parent / "arrays" / "metal"


def elementwise(body):
    """The text of a kernel with a body from `a`, `b` and `i` to `r`."""
    return f"""
    kernel void k(device const float *x, device const float *z, device float *y,
                  uint i [[thread_position_in_grid]]) {{
      float a = x[i], b = z[i], r = 0;
      {body}
      y[i] = r;
    }}"""


def compare_elementwise(declared, body):
    """Compare the derivatives of an elementwise kernel by `x` and `z` with differences."""
    x, z = np.random.default_rng(4).uniform(0.3, 1, (2, 8)).astype(np.float32)
    source = declared + elementwise(body)
    if "y[i]" in body:  # which stores its own result
        source = source.replace("y[i] = r;", "")
    arguments = {"x": x, "z": z, "y": np.zeros_like(x)}
    compare(source, "k", arguments, ["x", "z"], ["y"], 0, 4e-6, threads=8)


def double_functions():
    """Functions of doubles, which MSL does not have."""
    files = [_METAL / "doubles" / f"{name}.metal" for name in _DOUBLES]
    texts = [
        path.read_text().replace("METAL_FUNC double fmod(", "METAL_FUNC double fmod_(")
        for path in files
    ]
    return "\n".join([*texts, _OTHERS])


def in_doubles(source):
    """The text with doubles for floats."""
    source = re.sub(r"\b(packed_)?(float|half|bfloat)([234]?)\b", r"\1double\3", source)
    source = re.sub(r"\bfloat([234])x([234])\b", r"matrix<double, \1, \2>", source)
    return re.sub(
        r"(?<![\w.'])((?:\d[\d']*\.\d*|\.\d+)(?:[eE][+-]?\d+)?f)\b", r"double(\1)", source
    )


def differences(kernel, arguments, wrt, outputs, cotangents, step=1e-6, **launch):
    """Central differences of the sum of outputs times cotangents."""
    given = {
        k: v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
        for k, v in arguments.items()
    }

    def value():
        fresh = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
        kernel(**fresh, **launch)
        return sum(float((fresh[k] * cotangents[k]).sum()) for k in outputs)

    gradients = {}
    for name in wrt:
        array = given[name]
        gradients[name] = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            middle = array[index]
            array[index] = middle + step
            above = value()
            array[index] = middle - step
            gradients[name][index] = (above - value()) / (2 * step)
            array[index] = middle
    return gradients


def adjoints(source, name, arguments, wrt, outputs, cotangents, device="cpu", **launch):
    """Results of the adjoint of a kernel."""
    kernel = mtl.library(HEADER + source, device=device)[name]
    adjoint = vjp(kernel, wrt=wrt, outputs=outputs)
    zeros = {k: np.zeros(np.shape(arguments[k]), np.float32) for k in wrt}
    values = [arguments[p.name] for p in kernel.signature.arguments]
    given = [cotangents[k].astype(np.float32) for k in outputs]
    adjoint(*values, *given, *zeros.values(), **launch)
    return zeros


def compare(source, name, arguments, wrt, outputs, seed=0, bound=2e-6, step=1e-6, **launch):
    """Assert that both agree, relative to the largest entry."""
    random = np.random.default_rng(seed)
    cotangents = {k: random.normal(size=np.shape(arguments[k])) for k in outputs}
    computed = adjoints(source, name, arguments, wrt, outputs, cotangents, **launch)
    wide = mtl.library(HEADER + double_functions() + in_doubles(source), device="cpu")[name]
    rounded = {k: v.astype(np.float32).astype(np.float64) for k, v in cotangents.items()}
    expected = differences(wide, arguments, wrt, outputs, rounded, step, **launch)
    for key in wrt:
        scale = max(np.abs(expected[key]).max(), 1e-30)
        error = np.abs(computed[key] - expected[key]).max() / scale
        assert error <= bound, (key, error, computed[key], expected[key])


def compare_body(declared, body, seed):
    """Compare for a threadgroup of 32 and a body from `a`, `b`, `x`, `z`, `n`, `i` and `t` to `r`."""
    store = "" if "y[i]" in body else "y[i] = r;"
    source = f"""
    {declared}
    kernel void k(device const float *x, device const float *z, device float *y, constant int &n,
                  uint i [[thread_position_in_grid]],
                  uint t [[thread_position_in_threadgroup]]) {{
      float a = x[i], b = z[i], r = 0;
      {body.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup);")}
      {store}
    }}"""
    x, z = np.random.default_rng(seed).uniform(0.3, 1.2, (2, 32)).astype(np.float32)
    arguments = {"x": x, "z": z, "y": np.zeros_like(x), "n": 5}
    compare(source, "k", arguments, ["x", "z"], ["y"], 0, 5e-6, threads=32, group_size=32)
