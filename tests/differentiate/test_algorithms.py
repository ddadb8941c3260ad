"""Small algorithms: lists, recurrences, dynamic programming, tiles, and their jumps."""

import pytest
from differences import compare_body

#: Declarations, and bodies from `a`, `b`, `x`, `z`, `i` and `t` to `r`.
CASES = {
    "switch nested fall": (
        "",
        "switch (i % 4) { case 0: switch (i % 8) { case 0: r = a; break; case 4: r = b; } case 1: r += "
        "a; case 2: if (a > 0.8f) break; r *= b; default: r += a * b; }",
    ),
    "switch in do": (
        "",
        "int k = 0; do { switch (k) { case 0: r += a; continue; case 1: r *= b; break; case 2: r += 1; "
        "} r *= 1.5f; } while (++k < 4);",
    ),
    "switch return in loop": (
        "float f(float v, int n) { for (int k = 0; k < 6; k++) { switch (k + n) { case 3: return v * v;"
        " case 2: v += 1; case 1: v *= 1.5f; continue; default: v -= 0.1f; } v *= v; } return v; }",
        "r = f(a, i % 4) * b + f(b, 7);",
    ),
    "do nested": (
        "",
        "int p = 0; do { int q = 0; do { r = r * 0.9f + x[p] * z[q]; if (r > 3) break; q += 2; } while "
        "(q < 5); if (p == 2) { p += 2; continue; } r *= b; p++; } while (p < 5 && r < 4);",
    ),
    "ternary effects": (
        "",
        "float s = a; int k = 0; r = a > b ? (s *= b, s + 1) : (k++, s * 2); r *= k ? (s += a) : (s -= "
        "b); r += s * (k + 1); r = i % 2 ? r++ : --r; (i % 3) ? (void)(r *= a) : (void)(r += b);",
    ),
    "compound chains": (
        "",
        "float s, u; s = u = a * b; s += u *= s; r = (s -= u) * (u = b); r += s = u; float m[3] = {a, "
        "b, s}; m[0] += m[1] *= m[2]; r *= m[0] + m[1]; r -= (m[2] = a, m[2] * m[0]);",
    ),
    "increments of floats": (
        "",
        "float s = a; r = s++ * b + --s; r *= ++s; s--; r += s; for (float f = 0.5f; f < 3; f++) r += f"
        " * a * s;",
    ),
    "float counter": (
        "",
        "for (float f = a; f < 2.5f; f += b) r += f * f; float g = 3; while (g > 0.2f) { g *= 0.5f * b;"
        " r += g; }",
    ),
    "bubble sort": (
        "",
        "float m[5] = {x[i], x[(i + 1) % 32], x[(i + 2) % 32], z[i], z[(i + 3) % 32]}; for (int p = 0; "
        "p < 5; p++) for (int q = 0; q + 1 < 5 - p; q++) if (m[q] > m[q + 1]) { float t = m[q]; m[q] = "
        "m[q + 1]; m[q + 1] = t; } r = m[0] * 1 + m[1] * 2 + m[2] * m[3] + m[4] * b;",
    ),
    "inout in loop": (
        "void f(thread float &u, float v, thread int &c) { if (u > 2) { u *= 0.3f; c++; return; } u = u"
        " * v + 0.5f; }",
        "float u = a; int c = 0; for (int k = 0; k < 8; k++) { f(u, b, c); r += u * c; if (c == 2) "
        "break; } r *= u;",
    ),
    "method chain": (
        "struct S { float u; thread S &add(float v) { u += v * u; return *this; } thread S &mul(float "
        "v) { u *= v; return *this; } float get() const { return u * u; } };",
        "S s = {a}; r = s.add(b).mul(a).add(1).get(); s.mul(b); r *= s.u;",
    ),
    "nested structs": (
        "struct I { float u; float m[3]; }; struct O { I i; I j[2]; float2 v; }; void f(thread I &s, "
        "float w) { s.u += w; for (int k = 0; k < 3; k++) s.m[k] *= s.u; } void g(thread O &o, int k) {"
        " f(o.i, o.v.x); f(o.j[k], o.i.m[1]); o.v.y += o.j[1 - k].u; }",
        "O o; o.i = {a, {b, 1, a}}; o.j[0] = o.i; o.j[1] = {b, {a, a, b}}; o.v = float2(a, b); g(o, i %"
        " 2); g(o, 1); O p = o; g(p, 0); r = p.i.m[1] * p.j[0].m[2] + p.j[1].u * p.v.y + o.v.y;",
    ),
    "struct arrays swap": (
        "struct S { float u; float2 v; };",
        "S p[2] = {{a, {b, 1}}, {b, {a, a}}}; for (int k = 0; k < 3; k++) { S t = p[k & 1]; p[k & 1] = "
        "p[1 - (k & 1)]; t.u *= p[0].v.x; p[1 - (k & 1)] = t; } r = p[0].u * p[1].v.x + p[1].u * "
        "p[0].v.y;",
    ),
    "operators of structs": (
        "struct C { float u, v; C operator+(C o) const { return {u + o.u, v + o.v}; } C operator-() "
        "const { return {-u, -v}; } thread C &operator*=(C o) { float t = u; u = u * o.u - v * o.v; v ="
        " t * o.v + v * o.u; return *this; } thread float &operator[](int k) { return k ? v : u; } "
        "float operator()(float s) const { return u * s + v; } }; bool operator<(C p, C q) { return p.u"
        " < q.u; }",
        "C p = {a, b}, q = {b, 1}; p *= q; q *= q; C s = -p + q; r = s.u * s.v + s(a) * s(s(b)); if (p "
        "< q) r *= 2; r += -(-s).v;",
    ),
    "threadgroup helper break": (
        "float f(threadgroup const float *s, uint t, int n) { float v = 0; for (int k = 0; k < 32; k++)"
        " { if (k == int(t)) continue; v += s[k] * 0.1f; if (v > 1.2f || k > n + 20) break; } return v;"
        " }",
        "threadgroup float s[32]; s[t] = a * b; BARRIER r = f(s, t, n) * s[t]; r += f(s, 31 - t, 0);",
    ),
    "threadgroup helper reduce": (
        "float reduce(threadgroup float *s, float v, uint t) { s[t] = v; "
        "threadgroup_barrier(mem_flags::mem_threadgroup); for (uint st = 16; st > 0; st >>= 1) { if (t "
        "< st) s[t] += s[t + st]; threadgroup_barrier(mem_flags::mem_threadgroup); } float u = s[0]; "
        "threadgroup_barrier(mem_flags::mem_threadgroup); return u; }",
        "threadgroup float s[32]; float m = reduce(s, a, t) / 32; float v = reduce(s, (a - m) * (a - "
        "m), t) / 32; r = (a - m) * rsqrt(v + 0.1f) * b; r += reduce(s, r * b, t) * 0.1f;",
    ),
    "threadgroup structs": (
        "struct P { float v; float2 w; int k; };",
        "threadgroup P s[32]; s[t].v = a; s[t].w = float2(b, a); s[t].k = (t * 5) % 32; BARRIER P p = "
        "s[s[t].k]; r = p.v * p.w.x * b; BARRIER s[t].w.y *= p.v; BARRIER r += s[(t + 1) % 32].w.y;",
    ),
    "threadgroup loop data uniform": (
        "",
        "threadgroup float s[32]; s[t] = a; BARRIER int k = 0; while (s[0] < 3 && k < 6) { float v = "
        "s[(t + 1) % 32]; BARRIER s[t] = v * 1.3f + b; k++; BARRIER } r = s[t] * k;",
    ),
    "threadgroup do while": (
        "",
        "threadgroup float s[32]; s[t] = a; int k = 1; do { BARRIER float v = s[(t + k) % 32]; BARRIER "
        "s[t] += v * b * 0.3f; k *= 2; } while (k < 16); BARRIER r = s[31 - t];",
    ),
    "threadgroup prefix two": (
        "",
        "threadgroup float s[32]; threadgroup float w[32]; s[t] = a; w[t] = b; BARRIER for (uint d = 1;"
        " d < 32; d <<= 1) { float p = 1, q = 0; if (t >= d) { p = s[t - d]; q = w[t - d]; } BARRIER "
        "w[t] = w[t] + s[t] * q; s[t] = s[t] * p; BARRIER } r = w[t] * 0.1f + s[t];",
    ),
    "many returns": (
        "int f(float v, thread float &p, thread float2 &q, thread float *m) { p = v; for (int k = 0; k "
        "< 4; k++) { m[k] += v; if (m[k] > 1.6f) { q.x = m[k] * v; return k; } q = q.yx * 0.9f; if (k "
        "== 2) { p *= v; return -1; } } p = 0; return 7; }",
        "float p = 1; float2 q = float2(a, b); float m[4] = {a, b, 1, a}; int c = f(a, p, q, m); c += "
        "f(b, p, q, m + 0); r = p * q.x + q.y * m[1] * c + m[0] * m[2] * m[3];",
    ),
    "return struct early": (
        "struct R { float t; int hit; float3 n; }; R f(float v, float w) { R o; o.t = 1e3f; o.hit = 0; "
        "o.n = 0; if (v < 0.5f) return o; for (int k = 0; k < 5; k++) { v += w * 0.2f; if (v * v > "
        "1.4f) { o.t = v; o.hit = k; o.n = float3(v, w, v * w); break; } } return o; }",
        "R p = f(a, b), q = f(b, a); r = p.hit ? p.t * p.n.z : a; if (q.hit > 1) r += dot(p.n, q.n) * "
        "q.t;",
    ),
    "swizzle writes": (
        "",
        "float4 v = float4(a, b, a * b, 1); v.xy = v.zw; v.wzyx = v; v.xz += v.yw; v.yx *= v.xy; v.w -="
        " v.x; v.xyz = v.zxy * 0.5f; v.rg = float2(b, a) * v.ba; v.x++; v.yz /= float2(2, b + 1); r = "
        "v.x * v.y + v.z * v.w;",
    ),
    "swizzle in loops": (
        "",
        "float4 v = float4(a, b, 1, 2); for (int k = 0; k < 4; k++) { v = v.yzwx; v.x *= v.y * 0.5f + "
        "b; if (k == 2) { v.zw = v.xy; continue; } v.yw -= v.xx * 0.1f; } r = v.x + v.y * v.z + v.w;",
    ),
    "component loops": (
        "",
        "float4 v = float4(a, b, 1, 2), w; for (int k = 0; k < 4; k++) { w[k] = v[3 - k] * v[k]; v[(k +"
        " 1) & 3] += w[k] * a; } r = dot(v, w); float3 m[2]; for (int k = 0; k < 6; k++) m[k / 3][k % "
        "3] = x[k] * (k + 1) * b; m[i % 2][i % 3] *= a; r += dot(m[0], m[1]);",
    ),
    "shifts": (
        "",
        "int k = int(i) - 9; r = (k >> 2) * a + (k << 1) * b + (uint(k) >> 28) * a; k = 1 << (i % 5); k"
        " |= 3; k ^= i; k &= ~4; r += x[k & 31] * b; uint h = i; h ^= h << 13; h ^= h >> 17; h ^= h << "
        "5; r += x[h % 32] * a; h = h * 1664525u + 1013904223u; r += (h >> 8) * 1e-6f * b; long l = "
        "long(i) << 33; r += x[l >> 34] * a; ulong q = 0x1234567890abcdef; r += x[(q >> (i % 60)) & "
        "31];",
    ),
    "counters shift": (
        "",
        "for (uint k = 1; k < 32; k <<= 1) r = r * a + x[k]; for (int k = 31; k; k >>= 1) r = r * b + "
        "x[k]; for (int k = 1; k < 30; k = k * 2 + 1) r = r * a + x[k]; for (int k = 30; k > 0; k /= 3)"
        " r *= x[k]; for (uint k = 0; (1u << k) < 20; ++k) r += x[1u << k] * r;",
    ),
    "counter of two": (
        "",
        "int q = 0; for (int k = 0; k < 5; k++) { q += k; r = r * a + x[q]; q -= r > 1 ? 1 : 0; } for "
        "(int k = 0; k < 4; k++) { if (k & 1) q++; r = r * b + x[q]; } r *= x[q];",
    ),
    "counter by loaded": (
        "",
        "int q = 0; for (int k = 0; k < 6; k++) { r = r * a + x[q]; q = (q * 5 + 3) % 16; if (q == 2) "
        "k++; } for (int k = 0; k < n; k += 1 + (k & 1)) { r = r * b + x[k + q]; }",
    ),
    "short counters": (
        "",
        "for (short k = 0; k < 5; k++) r = r * a + x[k]; for (uchar k = 250; k > 5; k++) r = r * b + "
        "x[k & 7]; for (ushort k = 4; k-- > 0;) r = r * a + x[k]; for (long k = 5; k >= 0; k -= 2) r +="
        " x[k] * r; for (size_t k = 0; k < 3; ++k) r *= x[k]; for (char k = 'a'; k <= 'c'; k++) r += "
        "x[k - 'a'] * b;",
    ),
    "data loops": (
        "",
        "int m = int(a * 8); for (int k = 0; k < m; k++) { r = r * b + x[k]; for (int q = k; q < m; q "
        "+= 2) { r += a * x[q] * 0.1f; if (r > 2) break; } if (r > 2.5f) break; }",
    ),
    "logsumexp online": (
        "",
        "float m = -INFINITY, s = 0; for (int k = 0; k < 6; k++) { float v = x[(i + k) % 32] * b; float"
        " q = max(m, v); s = s * exp(m - q) + exp(v - q); m = q; } r = m + log(s);",
    ),
    "welford": (
        "",
        "float m = 0, s = 0; for (int k = 0; k < 7; k++) { float v = x[(i + k) % 32] * z[k]; float d = "
        "v - m; m += d / (k + 1); s += d * (v - m); } r = s / 6 * a + m;",
    ),
    "lu solve": (
        "",
        "float m[3][3], q[3]; for (int p = 0; p < 3; p++) { for (int k = 0; k < 3; k++) m[p][k] = x[(i "
        "+ p * 3 + k) % 32] + (p == k ? 3 : 0); q[p] = z[p] * b; } for (int p = 0; p < 3; p++) { for "
        "(int u = p + 1; u < 3; u++) { float f = m[u][p] / m[p][p]; for (int k = p; k < 3; k++) m[u][k]"
        " -= f * m[p][k]; q[u] -= f * q[p]; } } for (int p = 2; p >= 0; p--) { for (int k = p + 1; k < "
        "3; k++) q[p] -= m[p][k] * q[k]; q[p] /= m[p][p]; } r = q[0] * q[1] + q[2];",
    ),
    "fft 4": (
        "struct Z { float u, v; }; Z add(Z p, Z q) { return {p.u + q.u, p.v + q.v}; } Z sub(Z p, Z q) {"
        " return {p.u - q.u, p.v - q.v}; } Z muli(Z p) { return {-p.v, p.u}; } void bf(thread Z &p, "
        "thread Z &q) { Z s = add(p, q); q = sub(p, q); p = s; }",
        "Z m[4]; for (int k = 0; k < 4; k++) m[k] = {x[(i + k) % 32], z[k] * b}; bf(m[0], m[2]); "
        "bf(m[1], m[3]); m[3] = muli(m[3]); bf(m[0], m[1]); bf(m[2], m[3]); r = m[0].u * m[1].v + "
        "m[2].u * m[3].v;",
    ),
    "insertion list": (
        "",
        "float m[4] = {-1, -1, -1, -1}; int o[4] = {0}; for (int k = 0; k < 8; k++) { float v = x[(i + "
        "k) % 32] * z[k]; if (v > m[3]) { int p = 3; while (p > 0 && m[p - 1] < v) { m[p] = m[p - 1]; "
        "o[p] = o[p - 1]; p--; } m[p] = v; o[p] = k; } } r = m[0] * 1 + m[1] * m[2] + m[3] * x[o[2]];",
    ),
    "stack": (
        "",
        "float m[8]; int p = 0; for (int k = 0; k < 6; k++) { float v = x[(i + k) % 32]; if (v > 0.7f "
        "|| p < 2) m[p++] = v; else { float u = m[--p], w = m[--p]; m[p++] = u * w + b; } } while (p > "
        "1) { --p; m[p - 1] += m[p] * a; } r = m[0];",
    ),
    "bit loop": (
        "",
        "uint m = i * 2654435761u >> 20; while (m) { uint k = ctz(m); m &= m - 1; r = r * a + x[k]; } r"
        " *= b;",
    ),
    "while with several exits": (
        "",
        "int k = 0; float v = a; while (true) { v = v * 1.2f + x[k] * 0.1f; if (v > 2.2f) { r += v * b;"
        " break; } if (k == 4) { r -= v; break; } if (v < 0.9f) { k += 2; continue; } k++; r += v * "
        "0.1f; } r *= v;",
    ),
    "return in nested loops": (
        "float f(device const float *x, float v, int n) { for (int p = 0; p < n; p++) { int q = 0; do {"
        " v = v * 0.9f + x[q] * 0.3f; if (v > 1.1f) return v * p; if (q == p) break; q++; } while (q < "
        "4); if (p == 3) return v * v; } return -v; }",
        "r = f(x, a, 5) * f(x + 3, b, 3) + f(x, a * 2, 0);",
    ),
    "logic with effects": (
        "bool f(thread float &s, int k) { s = s * 1.1f + k * 0.1f; return s > 0.9f; }",
        "float s = a; bool p = f(s, 1) || (f(s, 2) && !f(s, 3)) ? f(s, 4) : f(s, 5); r = s * (p + 1); "
        "for (int k = 0; k < 3 && (f(s, k) || s < 1.5f); k++) r += s * b; r += !f(s, 1) ? s : s * b; if"
        " (!(f(s, 0) && f(s, 1))) r *= s;",
    ),
    "helper changes global index": (
        "int next(thread int &k) { k = (k * 5 + 1) % 8; return k; }",
        "int k = i % 8; float m[8]; for (int q = 0; q < 8; q++) m[q] = x[q] * a; r = m[next(k)] * "
        "m[next(k)] + m[k] * b; m[next(k)] = r; r += m[k] * m[next(k)];",
    ),
    "loop carried swap": (
        "",
        "float u = a, v = b; for (int k = 0; k < 5; k++) { float w = u; u = v; v = w * 0.9f + k; if (k "
        "== 2) { float q = u; u = v * 0.1f; v = q; } } r = u * v;",
    ),
    "dp table": (
        "",
        "float m[5][5]; for (int p = 0; p < 5; p++) for (int q = 0; q < 5; q++) { float c = fabs(x[p] -"
        " z[q] * 1.5f); m[p][q] = p == 0 && q == 0 ? c : c + min(p ? m[p - 1][q] : 1e9f, min(q ? m[p][q"
        " - 1] : 1e9f, p && q ? m[p - 1][q - 1] : 1e9f)); } r = m[4][4] * a;",
    ),
    "soft dtw": (
        "",
        "float m[4][4]; for (int p = 0; p < 4; p++) for (int q = 0; q < 4; q++) { float c = (x[p] - "
        "z[q]) * (x[p] - z[q]); if (p == 0 || q == 0) { m[p][q] = c + (p ? m[p - 1][q] : q ? m[p][q - "
        "1] : 0); continue; } float u = m[p - 1][q], v = m[p][q - 1], w = m[p - 1][q - 1]; float g = "
        "max(-u, max(-v, -w)); m[p][q] = c - (g + log(exp(-u - g) + exp(-v - g) + exp(-w - g))); } r = "
        "m[3][3] * a;",
    ),
    "viterbi": (
        "",
        "float d[3] = {a, b, 1}; for (int k = 0; k < 4; k++) { float e[3]; for (int p = 0; p < 3; p++) "
        "{ float best = -1e9f; int arg = 0; for (int q = 0; q < 3; q++) { float v = d[q] + x[(k + p * "
        "q) % 32] * z[q]; if (v > best) { best = v; arg = q; } } e[p] = best * (arg + 1) * 0.3f; } for "
        "(int p = 0; p < 3; p++) d[p] = e[p]; } r = d[0] + d[1] * d[2];",
    ),
    "gru": (
        "float sg(float v) { return 1 / (1 + exp(-v)); }",
        "float h[3] = {a, b, 0.5f}; for (int k = 0; k < 4; k++) { float g[3]; for (int p = 0; p < 3; "
        "p++) { float s = x[k] * z[p]; for (int q = 0; q < 3; q++) s += h[q] * z[p * 3 + q] * 0.3f; "
        "g[p] = sg(s); } for (int p = 0; p < 3; p++) h[p] = (1 - g[p]) * h[p] + g[p] * tanh(x[k] + "
        "h[p]); } r = h[0] * h[1] + h[2];",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_algorithms(name):
    compare_body(*CASES[name], len(name) + 7)
