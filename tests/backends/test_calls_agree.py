"""Functions that stay functions do what they do where they are inlined, on both engines."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import inlining
from metalloid.msl import lower

pytestmark = pytest.mark.needs("the CPU")

COUNT = 100
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = (
    "kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]], "
    "uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) "
)
WIDE = "struct Wide { uint v[6]; };\n"

#: Functions, and a body that calls them.
KERNELS = {
    "a number": (
        "uint f(uint v1, uint b0) { return v1 * 3 + b0; }",  # names that our code has
        "{ y[i] = f(x[i], i) + f(i, 7); }",
    ),
    "a condition": (
        "bool f(uint a) { return a % 3 == 1; }",
        "{ y[i] = f(x[i]) ? i : x[i]; }",
    ),
    "a half": (
        "half f(half a) { return a * 1.5h + 1; }",
        "{ y[i] = uint(f(half(x[i] & 255))); }",
    ),
    "a bfloat": (
        "bfloat f(bfloat a) { return a * bfloat(1.5f); }",
        "{ y[i] = uint(f(bfloat(float(x[i] & 255)))); }",
    ),
    "a vector": (
        "float4 f(float4 a, float b) { return a.wzyx * b + 1; }",
        "{ float4 r = f(float4(i, x[i] & 15, 2, 3), 0.5f); y[i] = uint(dot(r, r)); }",
    ),
    "a struct": (
        WIDE + "Wide f(Wide a, uint b) { for (uint k = 0; k < 6; k++) a.v[k] = a.v[5 - k] ^ b; "
        "return a; }",
        "{ Wide w; for (uint k = 0; k < 6; k++) w.v[k] = x[i] + k; w = f(w, i); w = f(f(w, 3), 5); "
        "y[i] = w.v[0] + 7 * w.v[3]; }",
    ),
    "a struct from a buffer": (
        WIDE + "uint f(Wide a, Wide b) { uint s = 0; for (uint k = 0; k < 6; k++) "
        "s = s * 31 + a.v[k] - b.v[k]; return s; }",
        "{ device const Wide* w = (device const Wide*)x; y[i] = f(w[i / 16], w[i / 9]); }",
    ),
    "a reference": (
        "uint f(uint a, thread uint& carry) { ulong s = ulong(a) * 5 + carry; "
        "carry = uint(s >> 32); return uint(s); }",
        "{ uint c = i, s = f(x[i], c); s += f(s, c); y[i] = s + c; }",
    ),
    "an array": (
        "void f(thread uint* a, uint n) { for (uint k = 1; k < n; k++) a[k] += a[k - 1]; }",
        "{ uint a[8]; for (uint k = 0; k < 8; k++) a[k] = x[i] + k; f(a, 8); f(a + 2, i % 5); "
        "y[i] = a[7] + a[i % 8]; }",
    ),
    "a table": (
        "constant uint TABLE[40] = {1, 2, 3, 5, 8, 13, 21, 34};\n"
        "uint f(constant uint* t, uint k) { return t[k % 8] + t[1]; }",
        "{ y[i] = f(TABLE, x[i]) + f(TABLE, 2); }",
    ),
    "memory of the device": (
        "uint f(device const uint* p, uint n) { uint s = 0; "
        "for (uint k = 0; k < n; k++) s += p[k]; return s; }",
        "{ y[i] = f(x + i / 2, i % 7) + f(x, 3); }",
    ),
    "stores": (
        "void f(device uint* p, uint v) { if (v % 3 == 0) return; *p = v; }",
        "{ y[i] = 1; f(y + i, x[i]); }",
    ),
    "functions that call functions": (
        WIDE + "uint g(uint a) { return a % 2 ? a * 3 + 1 : a / 2; }\n"
        "void f(thread Wide& w) { for (uint k = 0; k < 6; k++) w.v[k] = g(w.v[k]) + g(k); }",
        "{ Wide w; for (uint k = 0; k < 6; k++) w.v[k] = x[i] * k; f(w); f(w); "
        "y[i] = w.v[1] + w.v[4]; }",
    ),
    "lanes that diverge": (
        "uint f(uint a) { uint n = 0; while (a > 1) { a = a % 2 ? a * 3 + 1 : a / 2; n++; "
        "if (n > 60) return 99; } return n; }",
        "{ uint s = 0; if (i % 3) { for (uint k = 0; k < i % 4; k++) s += f(x[i] % 97 + k); } "
        "else s = f(i); y[i] = s; }",
    ),
    "barriers": (
        "uint f(uint a, uint b) { return a * 3 + b; }",
        "{ threadgroup uint s[32]; s[t] = f(x[i], i); "
        "threadgroup_barrier(mem_flags::mem_threadgroup); "
        "uint v = f(s[(t + 1) % 32], t); threadgroup_barrier(mem_flags::mem_threadgroup); "
        "y[i] = f(v, s[t]); }",
    ),
    "arguments that alias": (
        WIDE + "Wide h(Wide a, thread Wide& b) { for (uint k = 0; k < 6; k++) "
        "b.v[k] = b.v[k] * 3 + a.v[5 - k]; return b; }\n"
        "void g(thread Wide& a, thread Wide& b) { b = h(a, b); a = h(b, a); }",
        "{ Wide w; for (uint k = 0; k < 6; k++) w.v[k] = x[i] * k; g(w, w); w = h(w, w); "
        "y[i] = w.v[1] + w.v[4] * 5; }",
    ),
    "functions by which lanes meet": (
        "uint g(uint a) { return a * 5 + 1; }\nuint f(uint a) { return simd_sum(g(a)) + g(a); }",
        "{ y[i] = f(x[i]) + f(i); }",
    ),
}
#: These have no vector form.
REFUSED = {
    "a threadgroup variable of a function": (
        "uint f(uint a, uint t) { threadgroup uint s[32]; "
        "for (uint k = 0; k < 32; k++) s[k] = k * k ^ 5; return s[t % 32] + a; }",
        "{ y[i] = f(x[i], t); }",
    ),
    "recursion": (
        "uint f(uint a) { return a < 2 ? a : f(a - 1) + f(a - 2); }",
        "{ y[i] = f(x[i] % 9); }",
    ),
    "an element that differs between lanes": (
        WIDE + "uint f(thread Wide& w) { uint s = 0; for (uint k = 0; k < 6; k++) "
        "s = s * 7 + w.v[k]; return s; }",
        "{ Wide w[3]; for (uint k = 0; k < 18; k++) w[k / 6].v[k % 6] = x[i] + k; "
        "y[i] = f(w[i % 3]); }",
    ),
}


def run(name, engine="simd"):
    functions, body = {**KERNELS, **REFUSED}[name]
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(HEAD + functions + "\n" + KERNEL + body, device="cpu").k
        x = np.random.default_rng(1).integers(0, 2**32, 2 * COUNT, np.uint32)
        y = np.zeros(COUNT, np.uint32)
        kernel(x, y, threads=COUNT, group_size=32)
    return y.tolist(), kernel


@pytest.fixture(scope="module")
def another_cache(tmp_path_factory):
    """Where units are kept that the user's cache has otherwise."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def nothing_is_inlined(monkeypatch, another_cache):
    """Calls stay calls, of however small functions."""
    monkeypatch.setattr(lower, "_MAX_INLINED_SIZE", -1)
    never = [text.replace("=300", "=-10000") for text in inlining.SMALL_CALLS]
    monkeypatch.setattr(inlining, "SMALL_CALLS", never)
    with mtl.config.scope(cache_dir=another_cache):
        yield


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.sample(3)
def test_vector_forms_of_functions(name, request):
    inlined, _ = run(name, "reference")
    request.getfixturevalue("nothing_is_inlined")
    values, kernel = run(name)
    assert values == inlined
    assert kernel.engine.startswith("simd")
    assert "@mtl_lanes." in kernel.asm["ll"] or "meet" in name
    assert run(name, "reference")[0] == inlined


@pytest.mark.parametrize("name", REFUSED)
def test_functions_without_a_vector_form(name, request):
    inlined, _ = run(name, "reference")
    request.getfixturevalue("nothing_is_inlined")
    values, kernel = run(name)
    assert values == inlined
    assert kernel.engine.startswith("reference")
