"""Adjoints of kernels agree with differences in double precision."""

import numpy as np
import pytest
from differences import HEADER, adjoints, compare, elementwise

import metalloid as mtl
from metalloid.differentiate import vjp

N = 12


def floats(*shape, seed=1, low=0.2, high=1.5):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def compare_body(body, **more):
    arguments = {"x": floats(N), "z": floats(N, seed=2), "y": np.zeros(N, np.float32)}
    compare(elementwise(body), "k", arguments, ["x", "z"], ["y"], threads=N, **more)


FUNCTIONS = [
    "sin(a)", "cos(a)", "tan(a)", "asin(a / 2)", "acos(a / 2)", "atan(a)", "sinh(a)", "cosh(a)",
    "tanh(a)", "asinh(a)", "acosh(a + 1.5f)", "atanh(a / 2)", "exp(a)", "exp2(a)", "exp10(a)",
    "log(a)", "log2(a)", "log10(a)", "sqrt(a)", "rsqrt(a)", "abs(a - 1)", "fabs(a - 1)", "fract(a)",
    "saturate(a)", "pow(a, b)", "powr(a, b)", "atan2(a, b)", "fmod(a, b)", "max(a, b)", "min(a, b)",
    "fmax(a, b)", "fmin(a, b)", "copysign(a, b - 1)", "fdim(a, b)", "fma(a, b, a)", "mix(a, b, 0.3f)",
    "mix(a, b, a)", "clamp(a, 0.5f, b)", "sinpi(a / 4)", "cospi(a / 4)", "a / b - b * a + a",
    "a > b ? a * a : b * a", "floor(a * 3) * b", "step(a, b) * a", "sign(a - 1) * b", "-a * +b",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function):
    compare_body(f"r = {function};")


BODIES = {
    "overwritten": "r = a; r *= b; a = r * r; r += a * b; b = sin(r); r = b / a;",
    "branches": "if (a > b) { r = a * a; } else if (a > 0.7f) r = sin(a * b); else { a *= 2; r = a * b; }",
    "early return": "if (a > 1) return; if (b > 1) { r = b; y[i] = b * 3; return; } r = a * b;",
    "loop": "for (int j = 0; j < 5; j++) r += a * (b + j);",
    "product": "r = 1; for (int j = 0; j < 4; j++) r *= a + j * b;",
    "carried": "r = a; for (int j = 0; j < 6; ++j) { r = sin(r) * b; a = a * r + b; }",
    "nested": "for (int j = 0; j < 3; j++) { float s = b; for (int k = 0; k <= j; k++) s *= a; r += s * s; }",
    "triangle": "r = a; for (uint j = 4; j > 1; j--) for (uint k = j; k < 5; k += 2) r = r * b + sin(a * k);",
    "while": "r = a; int n = 0; while (r < 4 && n++ < 9) r = r * (1 + b);",
    "do": "r = a; do { r *= 0.5f * b; } while (r > 0.1f);",
    "break": "r = 1; for (int j = 0; j < 9; j++) { r *= a + b; if (r > 3) break; r += 0.1f * a; }",
    "continue": "for (int j = 0; j < 6; j++) { if (j % 2 == 0) continue; r += a * j; if (r > 2) { r *= b; continue; } r += b; }",
    "break from nested": "r = a; for (int j = 0; j < 4; j++) { for (int k = 0; k < 4; k++) { r *= b; if (r < 0.3f) break; r += a; } r *= 1.1f; }",
    "return from a loop": "r = b; for (int j = 0; j < 5; j++) { r *= a; if (r > 1.2f) { y[i] = r * a; return; } }",
    "switch": "switch (i % 4) { case 0: r = a; break; case 1: case 2: r = a * b; break; default: r = b * b; }",
    "falls through": "for (int j = 0; j < 4; j++) { switch ((i + j) % 5) { case 0: r *= a; if (r > 1) break; r += a * a; break; case 1: r += a; case 2: r *= 2 * b; break; case 3: { if (a < 0.9f) continue; for (int m = 0; m < 3; m++) { if (m == 2) break; r += b * m; } } default: r = r * r + b; } r += 0.1f * a; }",
    "array": "float m[3] = {a, b}; m[2] = m[0] * m[1]; for (int j = 0; j < 3; j++) m[j] *= m[(j + 1) % 3]; r = m[0] + 2 * m[2];",
    "table": "float m[2][2]; for (int j = 0; j < 4; j++) m[j / 2][j % 2] = a * j + b; r = m[0][1] * m[1][0] - m[1][1];",
    "stored twice": "y[i] = a * a; r = b; if (a > 0.8f) y[i] = b * b; y[i] = a; r = a * b;",
    "stored in a loop": "for (int j = 0; j < 3; j++) { y[i] = a * j; a *= b; } r = a;",
    "array in a loop": "float m[4] = {}; for (int k = 0; k < 3; k++) { for (int j = 0; j < 4; j++) m[j] += a * b * m[(j + 3) % 4] + a; } r = m[3] * m[2];",
    "conversions": "int n = int(a * 10); half h = half(0.5f); r = a * n + float(h) * b;",
    "conditions": "r = (a > 1 || b > 1) && !(a > b) ? a * a * b : b; bool c = a < b; if (c) r *= a;",
    "steps in values": "int n = 3; r = n++ * a; r += n-- * b; float m[2] = {a, b}; int k = 0; r *= m[k++]; r += m[k];",
    "shadowed names": "float s = a; { float s = b * b; r += s; } r += s * s;",
}  # fmt: skip


#: Those that are fast enough for each run.
FAST = ("break", "carried")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in BODIES]
)
def test_control_flow(name):
    compare_body(BODIES[name], bound=4e-6)


def cross(v, w):
    return [v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0]]


def dot(v, w):
    return sum(a * b for a, b in zip(v, w, strict=True))


def length(v):
    return dot(v, v) ** 0.5


def of_lanes(a, b):
    v = [a * b * b + 2, a * b + 2, a * b * a * b + 2, 3 + 0 * a]
    v = [(a * a * b) ** 2 + 2, b * b + 2, a * a * b * b + 2, 3]
    return v[0] * v[3] * 2 + v[1] * v[2] * 2


#: Bodies with vectors, and the same in Python.
VECTORS = {
    "arithmetic": (
        "float4 v = float4(a, b, a * b, 1); v.xy *= v.zw; v = v * v + 2; r = dot(v, v.wzyx);", of_lanes
    ),
    "lanes": (
        "float3 v = float3(a); v.y = b; v[2] = v.x * b; v.zx = v.xy; r = v.x * v.y + v.z;",
        lambda a, b: b * b + a,
    ),
    "dynamic lanes": (
        "float4 v = float4(a, b, a * b, 2); for (int j = 1; j < 4; j++) v[j] *= v[j - 1]; r = v[3] + v.x;",
        lambda a, b: (a * b) * (a * b) * 2 + a,
    ),
    "geometry": (
        "float3 v = float3(a, b, 1), w = float3(b, 2, a);"
        "r = length(v) * dot(normalize(w), cross(v, float3(a))) + distance(v, w);",
        lambda a, b: length([a, b, 1]) * dot([b, 2, a], cross([a, b, 1], [a] * 3)) / length([b, 2, a])
        + length([a - b, b - 2, 1 - a]),
    ),
    "functions of vectors": (
        "float2 v = sin(float2(a, b)) * exp(float2(b)); v = max(v, float2(0.9f, 0.1f)); r = v.x * v.y + length_squared(v);",
        None,
    ),
}  # fmt: skip


def complex_steps(function, a, b):
    step = 1e-30j
    a, b = a.astype(np.float64), b.astype(np.float64)
    return function(a + step, b).imag / 1e-30, function(a, b + step).imag / 1e-30


def of_functions(a, b):
    v = [np.sin(a) * np.exp(b), np.sin(b) * np.exp(b)]
    v = [np.where(x.real > low, x, low) for x, low in zip(v, (0.9, 0.1), strict=True)]
    return v[0] * v[1] + dot(v, v)


@pytest.mark.slow
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    body, function = VECTORS[name]
    source = elementwise(body)
    arguments = {"x": floats(N), "z": floats(N, seed=2), "y": np.zeros(N, np.float32)}
    computed = adjoints(source, "k", arguments, ["x", "z"], ["y"], {"y": np.ones(N)}, threads=N)
    expected = complex_steps(function or of_functions, arguments["x"], arguments["z"])
    for gradient, exact in zip(computed.values(), expected, strict=True):
        assert np.abs(gradient - exact).max() <= 2e-6 * np.abs(exact).max()


MATMUL = """
struct Shape { int rows, columns, depth; };
template <typename T> float product(device const T *a, device const T *b, int stride, int depth) {
  float sum = 0;
  for (int k = 0; k < depth; k++) {
    sum += a[k] * *b;
    b += stride;
  }
  return sum;
}
kernel void k(device const float *a, device const float *b, device float *c, constant Shape &shape,
              uint2 at [[thread_position_in_grid]]) {
  device const float *row = a + at.y * shape.depth;
  c[at.y * shape.columns + at.x] = product(row, b + at.x, shape.columns, shape.depth);
}"""


def test_helpers_pointers_structs():
    a, b = floats(5, 4), floats(4, 3, seed=2)
    given = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    shape = np.array([(5, 3, 4)], "i4,i4,i4")
    arguments = {"a": a, "b": b, "c": np.zeros((5, 3), np.float32), "shape": shape}
    computed = adjoints(MATMUL, "k", arguments, ["a", "b"], ["c"], {"c": given}, threads=(3, 5))
    assert np.allclose(computed["a"], given @ b.T, 1e-6, 1e-6)
    assert np.allclose(computed["b"], a.T @ given, 1e-6, 1e-6)


def test_sums_and_order_of_buffers():
    source = """
    kernel void k(device float2 *y [[buffer(2)]], device const packed_float3 *x [[buffer(1)]],
                  constant float &scale [[buffer(0)]], uint i [[thread_position_in_grid]]) {
      float3 v = float3(x[i]);
      y[i / 2] += float2(v.x * v.y, scale * v.z);
    }"""
    arguments = {"scale": floats(1), "x": floats(4, 3), "y": np.zeros((2, 2), np.float32)}
    given = floats(2, 2, seed=5)
    computed = adjoints(source, "k", arguments, ["x", "scale"], ["y"], {"y": given}, threads=4)
    x, (scale,), of = arguments["x"], arguments["scale"], given[[0, 0, 1, 1]]
    exact = np.stack([of[:, 0] * x[:, 1], of[:, 0] * x[:, 0], of[:, 1] * scale], 1)
    assert np.allclose(computed["x"], exact, 1e-6)
    assert np.isclose(computed["scale"][0], (of[:, 1] * x[:, 2]).sum(), 1e-6)


@pytest.mark.slow
def test_gather_scatter_references():
    source = """
    void bump(thread float &x, thread float *table, float by) { x += by; table[1] *= x; }
    kernel void k(device const float *x, device const int *index, device const float &scale,
                  device atomic_float *y, uint i [[thread_position_in_grid]]) {
      float table[2] = {x[index[i]], 2}, r = scale;
      bump(r, table, table[0]);
      bump(r, table, scale * r);
      atomic_fetch_add_explicit(&y[index[i] / 2], table[1] * r, memory_order_relaxed);
    }"""
    x, index = floats(6), np.array([0, 5, 5, 2, 3, 0, 1], np.int32)
    arguments = {"x": x, "index": index, "scale": floats(1), "y": np.zeros(3, np.float32)}
    given = np.array([1.5, -2, 0.5])
    computed = adjoints(source, "k", arguments, ["x", "scale"], ["y"], {"y": given}, threads=7)

    def total(x, scale):
        first = scale + x[index]
        second = first + scale * first
        return (given[index // 2] * (2 * first * second) * second).sum()

    wide, scale = x.astype(np.complex128), arguments["scale"].astype(np.complex128)
    for k in range(6):
        step = np.zeros(6, complex)
        step[k] = 1e-30j
        exact = total(wide + step, scale).imag / 1e-30
        assert abs(computed["x"][k] - exact) <= 2e-6 * abs(exact)
    assert abs(computed["scale"][0] / (total(wide, scale + 1e-30j).imag / 1e-30) - 1) < 2e-6


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["half", "bfloat"])
def test_short_floats(type_):
    source = f"""
    template <typename T>
    kernel void k(device const T *x, device T *y, uint i [[thread_position_in_grid]]) {{
      T a = x[i];
      for (int j = 0; j < 3; j++) a = a * a + T(0.25f);
      y[i] = a;
    }}
    template [[host_name("k_short")]] kernel void k<{type_}>(
        device const {type_} *, device {type_} *, uint);"""
    kernel = mtl.library(HEADER + source, device="cpu")["k_short"]
    adjoint = vjp(kernel, wrt=["x"], outputs=["y"])
    dtype = kernel.dtype("x")
    x = np.array([0.5, -0.25, 0.75, 0.1], dtype)
    d_x = np.zeros(4, np.float32)
    adjoint(x, np.zeros(4, dtype), np.ones(4, np.float32), d_x, threads=4)
    a, slope = x.astype(np.float64), 1.0
    for _ in range(3):
        slope = slope * 2 * a
        a = a * a + 0.25
    assert np.abs(d_x - slope).max() < (0.004 if type_ == "half" else 0.03) * np.abs(slope).max()


def test_references_to_outputs():
    source = """
    kernel void k(device const float2 &x, device float2 &y, device float &z) {
      for (int j = 0; j < 3; j++) z += x.x * x.y;
      y.x = x.x * x.x;
      y.y = 3 * x.y;
    }"""
    arguments = {"x": floats(2), "y": np.zeros(2, np.float32), "z": np.zeros(1, np.float32)}
    given = {"y": np.array([2.0, 3.0]), "z": np.array([0.5])}
    computed = adjoints(source, "k", arguments, ["x"], ["y", "z"], given, threads=1)
    a, b = arguments["x"]
    assert np.allclose(computed["x"], [4 * a + 1.5 * b, 9 + 1.5 * a], 1e-6)


def test_constants_of_the_text():
    source = """
    constant int power [[function_constant(0)]];
    constant float weights[2] = {3, 4};
    constexpr constant float scale = 0.5f;
    kernel void k(device const float *x, device packed_float3 *y, uint i [[thread_position_in_grid]]) {
      float r = 1;
      for (int j = 0; j < power; j++) r *= x[i];
      y[i] = float3(r * weights[1] * scale, r, 1);
    }"""
    kernel = mtl.library(HEADER + source, device="cpu").function("k", {"power": 3})
    x, d_x = floats(4), np.zeros(4, np.float32)
    given = floats(4, 3, seed=9)
    kernel.vjp()(x, np.zeros((4, 3), np.float32), given, d_x, threads=4)
    assert np.allclose(d_x, (given[:, 0] * 2 + given[:, 1]) * 3 * x**2, 1e-6)


REFUSED = {
    "y[i] = as_type<float>(as_type<int>(x[i]) + 1);": "the bits of integers",
    "y[i] = x[i]; y[i] = y[i] * 2;": "y is written to and read",
    "threadgroup atomic_int t; atomic_store_explicit(&t, 1, memory_order_relaxed); y[i] = x[i];": "atomic_store_explicit has no rule",
    "float d_t = x[i], top = d_t; device float *b = y; if (x[i] > 0) b = z; b[i] = top;": "chosen at run time",
    "threadgroup atomic_float t; atomic_fetch_add_explicit(&t, x[i], memory_order_relaxed); y[i] = x[i];": "atomic functions of threadgroup memory",
    "z[i] = x[i]; y[i] = x[i];": "name it among the outputs",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_refused(body):
    source = f"""{HEADER}
kernel void k(device const float *x, device float *y, device float *z, uint i [[thread_position_in_grid]]) {{
  {body}
}}"""
    kernel = mtl.library(source, device="cpu").k
    with pytest.raises(mtl.CompileError, match="k is not differentiated") as error:
        vjp(kernel, wrt=["x"], outputs=["y"])
    assert REFUSED[body] in str(error.value)
    assert error.value.diagnostics[0].line == 5


def test_unknown_names():
    kernel = mtl.library(HEADER + MATMUL, device="cpu").k
    with pytest.raises(mtl.ArgumentError, match=r"'shape' is no pointer, .*: a, b, c"):
        vjp(kernel, wrt=["shape"], outputs=["c"])
