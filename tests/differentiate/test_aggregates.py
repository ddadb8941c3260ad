"""Adjoints and tangents of structs and matrices agree with complex steps of NumPy functions."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

N = 3
MATRICES = f"""{HEADER}
static float3 applied(const thread float3x3 &m, float3 v) {{ return m * v; }}
kernel void k(device const float3x3 *m, device const float2x4 *n, device const float3 *x,
              constant float4x2 &c, device float2 *y, device float3x3 *z,
              uint i [[thread_position_in_grid]]) {{
  float3x3 a = m[i], b = 2.0f * a - float3x3(0.5f), s[2] = {{a, b}};
  float3 v = applied(a * transpose(b), x[i]) + x[i] * s[1];
  a[1] = cross(v, b[2]);
  a[2][0] += determinant(b);
  float total = 0;
  for (int k = 0; k < 3; k++) {{ total += a[k][2 - k] * b[k].y; s[0][k] *= total; }}
  y[i] = float2x2(c * n[i]) * float2(total, 1) + (n[i] * float2(v.x, 2)).xw;
  z[i] = i > 0 ? s[0] : -b;
}}"""


def matrices(m, n, x, c):
    """The kernel; matrices are arrays of columns."""
    ys, zs = [], []
    c = np.swapaxes(c, -1, -2)
    for i in range(N):
        a, other, v = m[i, :, :3].T, n[i].T, x[i, :3]
        b = 2 * a - 0.5 * np.eye(3)
        s = [a.copy(), b]
        w = a @ b.T @ v + v @ b
        a = a.copy()
        a[:, 1] = np.cross(w, b[:, 2])
        a[0, 2] += np.linalg.det(b)
        total = 0
        for k in range(3):
            total = total + a[2 - k, k] * b[1, k]
            s[0][:, k] *= total
        product = (c @ other) @ np.array([total, 1]) + (other @ np.array([w[0], 2]))[[0, 3]]
        ys.append(product)
        zs.append((s[0] if i > 0 else -b).T)
    return np.array(ys), np.array(zs)


def directions(function, inputs, weights):
    """The derivatives of a weighted sum of results, by each element of the inputs."""
    wide = [np.asarray(each, complex) for each in inputs]
    for value in wide:
        exact = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            value[index] += 1e-30j
            results = function(*wide)
            value[index] = value[index].real
            exact[index] = sum((w * r.imag).sum() for w, r in zip(weights, results, strict=True))
        yield exact * 1e30


@pytest.mark.slow
def test_matrices():
    random = np.random.default_rng(0)
    shapes = ((N, 3, 4), (N, 2, 4), (N, 4), (4, 2), (N, 2), (N, 3, 4))
    m, n, x, c, by_y, by_z = (random.uniform(0.2, 1, s).astype(np.float32) for s in shapes)
    m[..., 3] = x[..., 3] = by_z[..., 3] = 0
    kernel = mtl.library(MATRICES, device="cpu").k
    adjoint = kernel.vjp()
    assert (adjoint.wrt, adjoint.outputs) == (("m", "n", "x", "c"), ("y", "z"))
    inputs, results = (m, n, x, c), [np.zeros_like(by_y), np.zeros_like(by_z)]
    shadows = [np.zeros_like(each) for each in inputs]
    adjoint(*inputs, *results, by_y, by_z, *shadows, threads=N)
    weights = by_y, by_z[..., :3]
    for shadow, exact in zip(shadows, directions(matrices, inputs, weights), strict=True):
        np.testing.assert_allclose(shadow, exact, 1e-5, 1e-5 * np.abs(exact).max())
    steps = [random.normal(size=each.shape).astype(np.float32) for each in inputs]
    tangents = [np.zeros_like(each) for each in results]
    kernel.jvp()(*inputs, *results, *steps, *tangents, threads=N)
    moved = [each + 1e-30j * step for each, step in zip(inputs, steps, strict=True)]
    for tangent, value, wide in zip(tangents, results, matrices(*moved), strict=True):
        exact = wide.imag * 1e30
        computed = tangent[..., : exact.shape[-1]]
        np.testing.assert_allclose(value[..., : exact.shape[-1]], wide.real, 1e-5, 1e-5)
        np.testing.assert_allclose(computed, exact, 1e-5, 1e-5 * np.abs(exact).max())


STRUCTS = f"""{HEADER}
struct Law {{
  float scale; float2x2 turn;
  float get(float r) const {{ return scale * r * r; }}
  float get(float r) const device {{ return scale * r * r; }}
}};
struct Body {{ float3 at; int kind; float mass[2]; Law law; }};
static Body moved(Body body, float3 by) {{
  body.at += by * body.mass[1];
  if (body.kind == 1) body.law.turn[1] *= body.law.get(body.mass[0]);
  return body;
}}
kernel void k(device const Body *bodies, constant Law &law, device Body *out, device float *y,
              uint i [[thread_position_in_grid]]) {{
  Body body = bodies[i], others[2] = {{body, {{float3(1), 1, {{2}}, law}}}};
  for (int k = 0; k < 2; k++) others[k] = moved(others[k], body.at * law.scale);
  device const Law *inner = &bodies[i].law;
  others[1].law.scale = (*inner).get(others[0].mass[i % 2]);
  Law taken = body.kind == 1 ? law : others[1].law;
  y[i] = others[0].law.turn[1].x + dot(others[0].at, others[1].at) + taken.scale;
  out[i] = others[0];
  out[i].law = taken;
}}"""


def structs(at, mass, scale, turn, law_scale, law_turn):
    """The kernel, in which the first body is of kind 0."""
    rows = {"at": [], "mass": [], "scale": [], "turn": [], "y": []}
    for i in range(N):
        rotated = turn[i].copy()
        first = at[i] + at[i] * law_scale * mass[i, 1]
        if i > 0:
            rotated[1] = rotated[1] * scale[i] * mass[i, 0] ** 2
        second = 1 + at[i] * law_scale * 0
        by_other = law_turn.copy()
        by_other[1] = by_other[1] * law_scale * 4
        other_scale = scale[i] * mass[i, i % 2] ** 2
        chosen = (law_scale, law_turn) if i > 0 else (other_scale, by_other)
        rows["y"].append(rotated[1, 0] + first @ second + chosen[0])
        rows["at"].append(first)
        rows["mass"].append(mass[i])
        rows["scale"].append(chosen[0])
        rows["turn"].append(chosen[1])
    return [np.array(each) for each in rows.values()]


def flat(value):
    """The members of a struct that `structs` takes, of floats."""
    return value["at"][..., :3], value["mass"], value["law"]["scale"], value["law"]["turn"]


@pytest.mark.slow
def test_structs():
    random = np.random.default_rng(1)
    kernel = mtl.library(STRUCTS, device="cpu").k
    bodies = np.zeros(N, kernel.dtype("bodies"))
    law = np.zeros(1, kernel.dtype("law"))
    by_out, shadow, by_law = np.zeros_like(bodies), np.zeros_like(bodies), np.zeros_like(law)
    for value in (bodies, by_out):
        for member in flat(value):
            member[...] = random.uniform(0.3, 1, member.shape)
    bodies["kind"] = np.arange(N) > 0
    law["scale"], law["turn"] = 0.7, random.uniform(0.3, 1, (2, 2))
    by_y = random.uniform(0.3, 1, N).astype(np.float32)
    assert kernel.vjp().wrt == ()
    adjoint = kernel.vjp(wrt=["bodies", "law"], outputs=["out", "y"])
    y = np.zeros(N, np.float32)
    adjoint(bodies, law, np.zeros_like(bodies), y, by_out, by_y, shadow, by_law, threads=N)
    inputs = (*flat(bodies), law["scale"][0], law["turn"][0])
    computed = (*flat(shadow), by_law["scale"][0], by_law["turn"][0])
    weights = (*flat(by_out), by_y)
    for value, exact in zip(computed, directions(structs, inputs, weights), strict=True):
        np.testing.assert_allclose(value, exact, 1e-5, 1e-6)
    tangent = kernel.jvp(wrt=["bodies", "law"], outputs=["out", "y"])
    dot_out, dot_y = np.zeros_like(bodies), np.zeros(N, np.float32)
    tangent(bodies, law, np.zeros_like(bodies), y, by_out, law, dot_out, dot_y, threads=N)
    steps = (*flat(by_out), law["scale"][0], law["turn"][0])
    moved = [np.asarray(a + 1e-30j * b) for a, b in zip(inputs, steps, strict=True)]
    for value, wide in zip((*flat(dot_out), dot_y), structs(*moved), strict=True):
        np.testing.assert_allclose(value, wide.imag * 1e30, 1e-5, 1e-6)


SMALL = f"""{HEADER}
struct Pair {{ int kind; float2 v; }};
kernel void k(device const Pair *x, device const float2x2 *m, device float2 *y,
              uint i [[thread_position_in_grid]]) {{
  Pair pair = x[i];
  y[i] = m[i] * pair.v;
}}"""


def test_a_struct_and_a_matrix():
    kernel = mtl.library(SMALL, device="cpu").k
    random = np.random.default_rng(2)
    x = np.zeros(N, kernel.dtype("x"))
    m, x["v"] = (random.normal(size=s).astype(np.float32) for s in ((N, 2, 2), (N, 2)))
    by_y = random.normal(size=(N, 2)).astype(np.float32)
    d_x, d_m = np.zeros_like(x), np.zeros_like(m)
    kernel.vjp(wrt=["x", "m"])(x, m, np.zeros_like(by_y), by_y, d_x, d_m, threads=N)
    np.testing.assert_allclose(d_x["v"], np.einsum("ncr,nr->nc", m, by_y), 1e-5)
    np.testing.assert_allclose(d_m, np.einsum("nc,nr->ncr", x["v"], by_y), 1e-6)


@pytest.mark.parametrize(("body", "error", "message"), [
    ("y[0] = x[0].h;", mtl.ArgumentError, "members of 'x' are not float"),
    ("T t(x[0].f); y[0] = t.f;", mtl.CompileError, "this constructor has no rule"),
    ("float2x2 a(x[0].f); y[0] = float(a == a);", mtl.CompileError, "'==' of matrices"),
])  # fmt: skip
def test_refused_aggregates(body, error, message):
    source = f"""{HEADER}
struct S {{ float f; half h; S(float a) : f(a) {{}} }};
struct T {{ float f; T(float a, float b) : f(a * b) {{}} T(float a) : T(a, 2) {{}} }};
kernel void k(device const S *x, device float *y) {{ {body} }}"""
    with pytest.raises(error, match=message):
        mtl.library(source, device="cpu").k.vjp(wrt=["x"])


def test_functors_templates_and_names_of_types():
    source = (
        HEADER
        + """
    struct Square { template <typename T> T operator()(T x) { return x * x; } };
    template <typename T> struct Pair {
      typedef T value_t;
      T a, b;
      T sum() const { return a + b; }
      static value_t twice(value_t x) { return 2 * x; }
    };
    template <typename Op, typename T>
    void apply(device const T *x, device T *y, uint i) { y[i] = Op()(x[i]) + Op{}(x[i ^ 1]); }
    template <typename T> struct Mirror {
      using part = float;
      static void run(device const T *x, device T *y, uint i, threadgroup part *memory) {
        memory[i] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[i] += memory[31 - i];
      }
    };
    kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
      apply<Square, float>(x, y, i);
      Pair<float> pair = {x[i], 2};
      Square square;
      threadgroup typename Mirror<float>::part memory[32];
      Mirror<float>::run(x, y, i, memory);
      y[i] += pair.sum() * Pair<float>::twice(pair.a) + square(pair.b);
    }"""
    )
    random = np.random.default_rng(0)
    x, d_y = (random.normal(size=32).astype(np.float32) for _ in range(2))
    d_x = np.zeros(32, np.float32)
    adjoint = mtl.library(source, device="cpu").k.vjp()
    adjoint(x, np.zeros(32, np.float32), d_y, d_x, threads=32, group_size=32)
    paired = d_y[np.arange(32) ^ 1]
    expected = 2 * x * (d_y + paired) + d_y[::-1] + d_y * (4 * x + 4)
    assert np.abs(d_x - expected).max() <= 1e-5 * np.abs(expected).max()


def test_pointers_to_vectors():
    source = (
        HEADER
        + """
    kernel void k(device const float *x, device float *y, device const half *h, uint i [[thread_position_in_grid]]) {
      device const float4 *p = (device const float4 *)(x + 1);
      device float4 *q = reinterpret_cast<device float4 *>(y);
      float a[4] = {1, 2, 3, 4};
      thread float2 *b = (thread float2 *)a;
      b[1] *= p[i].xy;
      p += i;
      float4 s = *p++; s *= p[0].x;
      q[i] = s * float4(a[2]) * float(a[3]) + float4(((device const half4 *)h)[i]);
      q[i] += s;
      q[i].x += s.y;
    }"""
    )
    random = np.random.default_rng(0)
    x, d_y = (random.normal(size=n).astype(np.float32) for n in (73, 32))
    h = random.normal(size=32).astype(np.float16)
    d_x, d_h = np.zeros(73, np.float32), np.zeros(32, np.float32)

    def function(x):
        rows = x[1:69].reshape(17, 4)
        s = np.array([rows[i] * rows[i + 1][0] for i in range(8)])
        y = s * (12 * rows[:8, :1] * rows[:8, 1:2]) + s
        y[:, 0] += s[:, 1]
        return y.reshape(-1)

    adjoint = mtl.library(source, device="cpu").k.vjp(["x", "h"])
    adjoint(x, np.zeros(32, np.float32), h, d_y, d_x, d_h, threads=8)
    rows = np.array([function(x + 1e-30j * row).imag / 1e-30 for row in np.eye(73)])
    expected = rows @ d_y
    assert np.abs(d_x - expected).max() <= 2e-6 * np.abs(expected).max()
    np.testing.assert_array_equal(d_h, d_y)


def test_pointers_to_other_numbers():
    source = (
        HEADER
        + """
    kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
      y[i] = float(((device const half *)x)[i]);
    }"""
    )
    with pytest.raises(mtl.CompileError, match="a pointer to float as one to half has no rule"):
        mtl.library(source, device="cpu").k.vjp()


def test_rounding_by_a_large_number():
    source = (
        HEADER
        + """
    kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
      float j = fma(1.442695f, x[i], 12582912.f);
      j = j - 12582912.0f;
      float k = (3 * x[i] + 8388608.0f) - 0x1p23f;
      y[i] = exp2(x[i] * 1.442695f - j) + k;
    }"""
    )
    x = np.linspace(0.1, 2, 20, dtype=np.float32)
    d_x = np.zeros(20, np.float32)
    mtl.library(source, device="cpu").k.vjp()(x, np.zeros_like(x), np.ones_like(x), d_x, threads=20)
    scaled = 1.442695 * x.astype(np.float64)
    np.testing.assert_allclose(d_x, np.exp2(scaled - np.rint(scaled)), rtol=1e-6)


def test_instances_of_templates_by_their_parameters():
    source = (
        HEADER
        + """
    template <typename T>
    [[kernel]] void scale(device const T *x, device T *y, uint i [[thread_position_in_grid]]) {
      y[i] = x[i] * T(sizeof(T)) + numeric_limits<T>::epsilon();
    }
    template [[host_name("scale_half")]] [[kernel]]
    void scale(device const half *, device half *, uint i [[thread_position_in_grid]]);
    template [[host_name("numbers::scale")]] [[kernel]]
    void scale(device const float *, device float *, uint i [[thread_position_in_grid]]);
    """
    )
    library = mtl.library(source, device="cpu")
    for name, dtype, size in ("scale_half", np.float16, 2), ("numbers::scale", np.float32, 4):
        x, d_x = np.ones(4, dtype), np.zeros(4, np.float32)
        adjoint = library.function(name).vjp()
        adjoint(x, np.zeros_like(x), np.ones(4, np.float32), d_x, threads=4)
        np.testing.assert_array_equal(d_x, size)
