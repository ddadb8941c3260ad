"""Constructs of C++ as kernels use them: jumps, helpers, tiles, recurrences."""

import pytest
from differences import compare_body

#: Declarations, and bodies from `a`, `b`, `x`, `z`, `i` and `t` to `r`.
CASES = {
    "nested continue break": (
        "",
        "for (int p = 0, q = 7; p < 6; p++, q -= 2) { if (p == 1) continue; for (int k = 0; k < 5; "
        "k++) { if ((k + q) % 3 == 0) continue; if (k > p) break; r += x[k] * a * (q + 8); } if (r > "
        "9) break; r *= b; }",
    ),
    "two counters": (
        "",
        "for (int p = 6, q = 0; p > q; --p, ++q) { r = r * x[p] + z[q] * a; }",
    ),
    "default in the middle": (
        "",
        "switch (i % 5) { case 0: r += a; default: r += b * b; case 2: r *= a; break; case 3: r = a *"
        " a; break; case 4: r -= b; } r *= b;",
    ),
    "switch in loop with continue": (
        "",
        "for (int k = 0; k < 7; k++) { switch (k) { case 1: continue; case 3: r += a * b; case 2: { r"
        " *= a; break; } case 5: if (r > 1) continue; r += b; break; default: r += x[k]; } r *= 1.1f;"
        " }",
    ),
    "short circuit stores": (
        "bool f(thread float &s, float w) { s = s * w + 1; return s > 1.5f; }",
        "float s = a; if (f(s, b) && f(s, a) && f(s, s)) r = s * b; else r = s * a; if (f(s, a) || "
        "f(s, b)) r += s;",
    ),
    "short circuit in while": (
        "bool f(thread float &s, float w) { s = s * w; return s > 0.05f; }",
        "float s = a; int k = 0; while (k < 10 && f(s, b)) { r += s; k++; } r *= s;",
    ),
    "comma": (
        "",
        "float u = a, v = b; r = (u *= v, v += u, u * v); for (int k = 0; k < 3; u += v * k, v *= a, "
        "k++) r += u; r *= (u, v);",
    ),
    "computed elements": (
        "",
        "float m[4] = {a, b, a * b, 1}; for (int k = 0; k < 6; k++) { m[(k * 3 + i) % 4] *= m[k % 4] "
        "+ b; m[k & 3] -= a * m[(k + 1) & 3]; } r = m[0] * m[1] + m[2] * m[3];",
    ),
    "struct by value": (
        "struct S { float u; float2 v; }; S f(S s) { s.u *= s.v.x; s.v.y += s.u; return s; }",
        "S s = {a, {b, 1}}; S q = f(s); S w = f(f(q)); s = w; s.u += q.u; r = s.u * w.u + w.v.y * "
        "q.v.y + f(s).u;",
    ),
    "templates": (
        "template <typename T, int N = 3, bool SQ = true> T f(T v) { T s = 0; for (int k = 0; k < N; "
        "k++) { s += v * T(k + 1); if (SQ) s *= v; } return s; } template <int N> struct Pow { static"
        " float of(float v) { return v * Pow<N - 1>::of(v); } }; template <> struct Pow<0> { static "
        "float of(float) { return 1; } };",
        "r = f<float>(a) + f<float, 2>(b) * f<float, 4, false>(a) + Pow<5>::of(a) * Pow<2>::of(b);",
    ),
    "template recursion": (
        "template <int N> float f(float u, float v) { if constexpr (N == 0) return u; else { float w "
        "= u * v + N; return f<N - 1>(w * 0.5f, u) * v; } }",
        "r = f<4>(a, b) + f<2>(b, a);",
    ),
    "overloads": (
        "float f(float v) { return v * v; } float2 f(float2 v) { return v.yx * v; } float f(float v, "
        "float w) { return f(v) * f(w) + f(float2(v, w)).x; } float f(int k, float v) { return k * v;"
        " }",
        "r = f(a) + f(float2(a, b)).y * f(a, b) + f(3, b) * f(f(a), f(b));",
    ),
    "tables": (
        "constant float T[4] = {0.5f, 1.5f, -2, 3}; constant int O[4] = {2, 0, 3, 1}; struct C { "
        "static constexpr constant float s = 1.25f; };",
        "for (int k = 0; k < 4; k++) r += T[k] * x[O[k]] * a + T[O[k]] * b * C::s; const float w[3] ="
        " {1, 4, 1}; for (int k = 0; k < 3; k++) r += w[k] * z[(i + k) % 32] * w[2 - k];",
    ),
    "tile reuse": (
        "",
        "threadgroup float s[32]; s[t] = a; BARRIER r = s[(t + 1) % 32] * b; BARRIER s[t] = r * b; "
        "BARRIER r += s[(t + 7) % 32] * s[t]; BARRIER s[31 - t] = r + a; BARRIER r *= s[t];",
    ),
    "double buffering": (
        "",
        "threadgroup float s[2][32]; s[0][t] = a; BARRIER int cur = 0; for (int k = 1; k < 32; k *= "
        "2) { s[1 - cur][t] = s[cur][t] + (t >= uint(k) ? s[cur][t - k] * b : 0.0f); cur = 1 - cur; "
        "BARRIER } r = s[cur][t] * a;",
    ),
    "double buffering xor": (
        "",
        "threadgroup float s[2][32]; int c = 0; s[c][t] = a; BARRIER for (int k = 0; k < 3; k++) { "
        "s[c ^ 1][t] = s[c][(t + 1) % 32] * s[c][t] + b; BARRIER c ^= 1; } r = s[c][(t + 3) % 32];",
    ),
    "strided reduction": (
        "",
        "threadgroup float s[32]; float acc = 0; for (uint k = t; k < 32; k += 8) acc += x[k] * z[k] "
        "* x[k]; s[t] = acc; BARRIER for (uint st = 1; st < 32; st *= 2) { if (t % (2 * st) == 0) "
        "s[t] += s[t + st]; BARRIER } r = s[0] * a;",
    ),
    "recurrence of three": (
        "",
        "float p = a, q = b, s = 1; for (int k = 0; k < n + int(i % 3); k++) { float t0 = p * q; p = "
        "q + s; q = s * b; s = t0; } r = p * q * s;",
    ),
    "data dependent while": (
        "",
        "float v = a; int k = 0; while (v < 5) { v = v * (1 + b) + 0.1f; if (++k > 20) break; } r = v"
        " * k;",
    ),
    "newton": (
        "",
        "float v = a; for (int k = 0; k < 20; k++) { float d = (v * v - b) / (2 * v); v -= d; if "
        "(fabs(d) < 1e-3f) break; } r = v * a;",
    ),
    "shadowed": (
        "",
        "float u = a; { float u = b * b; r += u; { float u = r * a; r *= u; } r += u; } for (int k = "
        "0; k < 3; k++) { float u = x[k]; r += u; for (int k = 0; k < 2; k++) { float u = r * b; r +="
        " u * 0.1f; } } r *= u;",
    ),
    "references to elements": (
        "",
        "float m[4] = {a, b, 1, a * b}; thread float &u = m[i % 4]; u *= a; thread float &v = m[(i + "
        "1) % 4]; v += u; u = v * u; r = m[0] * m[1] + m[2] * m[3];",
    ),
    "pointer steps": (
        "",
        "device const float *p = x, *e = x + 6; device const float *q = z + 8; for (int k = 0; k < 6;"
        " k++) r = r * a + *p++ * *--q; r += *p * q[1];",
    ),
    "offsets": (
        "",
        "const device float *const p = x + (i / 4) * 4; const device float *q = p + 1; r = p[0] * "
        "q[1] * b + *(q + 2) * *(p) + q[-1];",
    ),
    "fabs and signs": (
        "",
        "float d = a - b; r = fabs(d) * a + sign(d) * b * b + copysign(a * b, d) + abs(d) * d;",
    ),
    "negative strides": (
        "",
        "device const float *p = x + 31; int st = -3; for (int k = 0; k < 6; k++) r += p[k * st] * "
        "z[31 - int(i)] * p[-int(i)]; for (int k = 9; k >= 0; k -= 4) r = r * 0.5f + x[k] * b;",
    ),
    "early return": (
        "float f(float v, float w) { if (v > 0.9f) return v * w; for (int k = 0; k < 5; k++) { v += w"
        " * 0.3f; if (v > 1.2f) return v * v; if (k == 3) return w; } return v; }",
        "r = f(a, b) * f(b, a) + f(f(a, a), b);",
    ),
    "out references": (
        "void split(float v, thread float &hi, thread float &lo, thread int &c) { hi = v * v; if (v >"
        " 0.8f) { lo = 1; return; } lo = v - hi; c++; }",
        "float p, q, u = a, v; int c = 1; split(a, p, q, c); split(b, u, v, c); split(u, u, v, c); r "
        "= p * q + u * v * c;",
    ),
    "nested breaks": (
        "",
        "bool done = false; for (int p = 0; p < 4 && !done; p++) { for (int q = 0; q < 4; q++) { for "
        "(int s = 0; s < 3; s++) { r += a * x[q]; if (r > 4) { done = true; break; } if (s == q) "
        "break; } if (done) break; r *= 1 + b * 0.2f; } }",
    ),
    "tiled matmul": (
        "",
        "threadgroup float s[4][4], w[4][5]; uint p = (t / 4) % 4, q = t % 4; for (int k0 = 0; k0 < "
        "8; k0 += 4) { if (t < 16) { s[p][q] = x[p * 8 + k0 + q]; w[p][q] = z[(k0 + p) * 4 + q]; } "
        "BARRIER for (int k = 0; k < 4; k++) r += s[p][k] * w[k][q]; BARRIER } r *= r;",
    ),
    "argmin pair": (
        "struct P { float v; int k; }; P less(P p, P q) { return q.v < p.v ? q : p; }",
        "P best = {1e9f, 0}; for (int k = 0; k < 6; k++) best = less(best, P{x[(i + k) % 32] * b, "
        "k}); r = best.v * (best.k + 1) * z[best.k];",
    ),
    "pool": (
        "",
        "float best = -INFINITY; int at = 0; for (int k = 0; k < 5; k++) { float v = x[(i * 3 + k * "
        "7) % 32] * z[k]; if (v > best) { best = v; at = k; } } r = best * z[at + 1] * (at + 1);",
    ),
    "bitonic tile": (
        "",
        "threadgroup float s[32]; s[t] = a * b; for (uint k = 2; k <= 32; k <<= 1) for (uint j = k >>"
        " 1; j > 0; j >>= 1) { BARRIER uint l = t ^ j; float p = s[t], q = s[l]; BARRIER bool up = (t"
        " & k) == 0; s[t] = (l > t) == up ? min(p, q) : max(p, q); } BARRIER r = s[t] * (t + 1);",
    ),
    "counter used after": (
        "",
        "int k; for (k = 0; k < 10; ++k) { r += x[k] * a; if (r > 2.0f) break; } r *= z[k] * k; k -= "
        "1; r += x[k < 0 ? 0 : k];",
    ),
    "while with assignment in condition": (
        "",
        "float v; int k = 0; while ((v = x[k] * a) < 0.8f && k < 10) { r += v * b; k++; } r += v;",
    ),
    "bool algebra": (
        "",
        "bool p = a > b, q = a > 0.8f; if (p != q) r = a * b; else if (!(p && q) || n > 7) r = a + b;"
        " else r = a * a; r *= (p ^ q) ? b : a; r += p * a + (int(q) + 2) * b;",
    ),
    "loop changes its counter": (
        "",
        "for (int k = 0; k < 12; k++) { if (x[k] > 0.7f) k++; r = r * 0.9f + x[k] * b; if (k % 4 == "
        "1) k += 1; }",
    ),
    "aliased references": (
        "void f(thread float &p, thread float &q) { p = p * q; q = p + q; p *= q; }",
        "float u = a, v = b; f(u, v); f(u, u); f(v, u); r = u * v; float m[3] = {a, b, r}; f(m[1], "
        "m[1]); f(m[0], m[1]); f(m[i % 3], m[2]); r = m[0] + m[1] + m[2];",
    ),
    "condition order": (
        "float g(thread float &s) { s *= 1.3f; return s; }",
        "float s = a; if (s < g(s) * b || g(s) > 1.5f) r = s; else r = s * s; while (s < 3 && g(s) < "
        "2.5f) r += s * b; r += (g(s) > 2 ? s : s * b) * s; switch (int(g(s) * 2) % 3) { case 0: r +="
        " s; break; case 1: r *= s; break; default: r -= s * b; }",
    ),
    "struct init order": (
        "struct P { float u, v, w; }; float g(thread float &s) { s *= 1.5f; return s; }",
        "float s = a; P p = {s, g(s), s}; P q = P{g(s), s, b}; r = p.u * p.v + p.w * q.u + q.v * q.w;",
    ),
    "locals of helpers in loops": (
        "float f(float v, int n) { float s; if (n > 1) s = v; else s = v * v; for (int k = 0; k < n; "
        "k++) { float w = s * 0.5f; s += w * v; } return s; }",
        "for (int k = 0; k < 4; k++) { r += f(a * (k + 1) * 0.3f, k) * f(b, k); if (k == 2) r *= f(r "
        "* 0.2f, 2); }",
    ),
    "multi dimensional": (
        "",
        "float m[2][3][2]; for (int p = 0; p < 2; p++) for (int q = 0; q < 3; q++) for (int s = 0; s "
        "< 2; s++) m[p][q][s] = a * p + b * q + s; for (int p = 0; p < 2; p++) for (int q = 0; q < 3;"
        " q++) m[p][q][q % 2] *= m[1 - p][(q + 1) % 3][1] + a; r = m[0][0][0] + m[1][2][0] * "
        "m[0][1][1] + m[1][1][1];",
    ),
    "broadcast from one thread": (
        "",
        "threadgroup float m; threadgroup float s[32]; s[t] = a * b; BARRIER if (t == 0) { float v = "
        "s[0]; for (int k = 1; k < 32; k++) v = max(v, s[k]); m = v; } BARRIER s[t] = exp(s[t] - m); "
        "BARRIER if (t == 0) { m = 0; for (int k = 0; k < 32; k++) m += s[k]; } BARRIER r = s[t] / m;",
    ),
    "ring buffer": (
        "",
        "float h[3] = {a, b, 1}; for (int k = 0; k < 8; k++) { float v = h[k % 3] * 0.6f + h[(k + 2) "
        "% 3] * x[k]; h[k % 3] = v; } r = h[0] * h[1] + h[2];",
    ),
    "state space scan": (
        "",
        "float h[4] = {0}; for (int k = 0; k < 6; k++) { float o = 0; float u = x[(i + k) % 32]; for "
        "(int s = 0; s < 4; s++) { float d = exp(-b * (s + 1)); h[s] = h[s] * d + u * z[s + k]; o += "
        "h[s] * z[s]; } r += o * u; }",
    ),
    "early return of kernel": (
        "",
        "if (i % 5 == 4) return; r = a * b; if (a > 1.0f) { y[i] = r * a; return; } for (int k = 0; k"
        " < 4; k++) { r += x[k]; if (r > 2.2f) { y[i] = r * r; return; } } y[i] = r * b;",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_constructs(name):
    compare_body(*CASES[name], len(name))
