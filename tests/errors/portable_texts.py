"""By rule: a text that Apple's compiler refuses and clang takes, and the nearest one that is fine.

The words of Apple's compiler are from its published messages; the restrictions of C++ are those of
the MSL specification, section 1.6.1. A text is the body of a kernel unless it holds one.
"""

ID = "uint i [[thread_position_in_grid]]"
KERNEL = f"kernel void k(device float *x, constant float4 *c, {ID}) {{\n  %s\n}}"


def _with_kernel(text):
    return text if "kernel" in text else KERNEL % text


def _before(text, body="x[i] = 1;"):
    return f"{text}\n{KERNEL % body}"


RULES = {
    "double": ("double d = 1; x[i] = d;", "float d = 1; x[i] = d;"),
    "goto": ("again: x[i] += 1; if (x[i] < 3) goto again;", "do { x[i] += 1; } while (x[i] < 3);"),
    "thread_local":
        (_before("thread_local int n = 1;"), _before("constant int n = 1;")),
    "a virtual function":
        (_before("struct A { virtual int f() { return 1; } };"),
         _before("struct A { int f() { return 1; } }; struct B : A {};")),
    "try": ("try { x[i] = 1; } catch (...) {}", "int attempt = 1; x[i] = attempt;"),
    "throw": ("if (i > 3) throw 1;", "if (i > 3) return;"),
    "new": ("thread int *p = new int; x[i] = *p;", "int p = 1; x[i] = p;"),
    "delete": (_before("void f(thread int *p) { delete p; }"),
               _before("struct A { A() thread = default; A(const thread A&) thread = delete; };")),
    "the noexcept operator":
        ("x[i] = noexcept(x[i]);", _before("int f() noexcept { return 1; }", "x[i] = f();")),
    "assembly": ('__asm__ volatile("nop");', _before('void f() __asm("label"); void f() {}')),
    "a name of ours": (_before("METALLOID_INLINE int f() { return 1; }"),
                       _before("METAL_FUNC int f() { return 1; }")),
    "a namespace of ours": ("x[i] = metalloid::bare<int>(1);", "x[i] = metal::min(i, 1u);"),
    "a header of C++": (_before("#include <cmath>"), _before("#include <metal_math>")),
    "an array of variable length": ("float a[i]; a[0] = 1; x[i] = a[0];",
                                    "constexpr int n = 4; float a[n]; a[0] = 1; x[i] = a[0];"),
    "a pointer parameter without space":
        (_before("void f(float *p) { *p = 1; }"), _before("void f(thread float *p) { *p = 1; }")),
    "a space behind the type": (_before("void f(float const *p) {}"),
                                _before("void f(float const device *p) {}")),
    "a reference parameter without space":
        (_before("void f(const float &p) {}"), _before("void f(const thread float &p) {}")),
    "a pointer variable without space":
        ("float v = 1; float *p = &v; x[i] = *p;", "float v = 1; auto p = &v; x[i] = *p;"),
    "a reference variable without space":
        ("float v = 1; float &p = v; p = 2;", "float v = 1; auto &p = v; p = 2;"),
    "a member without space":
        (_before("struct A { float *p; };"), _before("struct A { device float *p; };")),
    "a result without space":
        (_before("struct A { float v; float &get() { return v; } };"),
         _before("struct A { float v; thread float &get() { return v; } };")),
    "a pointer in a template":
        (_before("template <class T> void f(T v, int *p) {}", "int n; f(1, &n);"),
         _before("template <class T> void f(T v, T *p) {}", "int n; f(1, &n);")),
    "a variable of the program":
        (_before("int n = 1;"), _before("constant int n = 1;")),
    "a constexpr of the program":
        (_before("constexpr float pi = 3.14;"), _before("constexpr constant float pi = 3.14;")),
    "a static member":
        (_before("struct A { static int n; };"),
         _before("struct A { static constexpr constant int n = 1; };")),
    "a static variable": ("static int n = 0; x[i] = n++;", "int n = 0; x[i] = n++;"),
    "threadgroup memory of the program":
        (_before("threadgroup float t[4];"), "threadgroup float t[4] = {0}; x[i] = t[0];"),
    "threadgroup memory of a function":
        (_before("void f(uint i) { threadgroup float t[4]; t[i] = i; }"),
         _before("void f(threadgroup float *t, uint i) { threadgroup float *u = t; u[i] = i; }")),
    "an atomic variable":
        ("atomic_int n; atomic_store_explicit(&n, 1, memory_order_relaxed);",
         "threadgroup atomic_int n; atomic_store_explicit(&n, 1, memory_order_relaxed);"),
    "a pointer to another space":
        ("thread float *p = x; p[i] = 1;", "device float *p = x; p[i] = 1;"),
    "an argument in another space":
        (_before("void f(thread float *p) { *p = 1; }", "f(x);"),
         _before("void f(device float *p) { *p = 1; }\nvoid f(thread float *p) {}", "f(x);")),
    "a reference to another space":
        (_before("void f(thread float &p) { p = 1; }", "f(x[i]);"),
         _before("void f(const thread float &p) {}", "f(x[i]);")),
    "a cast to another space":
        ("x[i] = *(thread float *)x;", "x[i] = *(device int *)x;"),
    "a pointer to another space in a template":
        (f"template <class T> kernel void k(device T *x, {ID}) {{\n  thread T *p = x; p[i] = 1;\n}}\n"
         'template [[host_name("k_int")]] kernel void k<int>(device int *, uint);',
         f"template <class T> kernel void k(device T *x, {ID}) {{\n  device T *p = x; p[i] = 1;\n}}\n"
         'template [[host_name("k_int")]] kernel void k<int>(device int *, uint);'),
    "a 64-bit atomic":
        (f"kernel void k(device atomic_ulong *a, {ID}) "
         "{ atomic_fetch_add_explicit(a, 1ul, memory_order_relaxed); }",
         f"kernel void k(device atomic_ulong *a, {ID}) "
         "{ atomic_max_explicit(a, 1ul, memory_order_relaxed); }"),
    "a kernel with a result":
        ("kernel int k(device int *x) { return x[0]; }", "kernel void k(device int *x) {}"),
    "a kernel as a member": ("struct A { kernel void k(device int *x) {} };",
                             "namespace A { kernel void k(device int *x) {} }"),
    "a value": ("kernel void k(float v, device int *x) {}",
                f"kernel void k(constant float &v, device int *x, {ID}) {{}}"),
    "a value in a buffer": ("kernel void k(float v [[buffer(1)]], device int *x) {}",
                            "kernel void k(constant float &v [[buffer(1)]], device int *x) {}"),
    "a threadgroup buffer":
        ("kernel void k(threadgroup float *t [[buffer(0)]]) {}",
         "kernel void k(threadgroup float *t [[threadgroup(0)]]) {}"),
    "too high a buffer": ("kernel void k(device int *x [[buffer(31)]]) {}",
                          "kernel void k(device int *x [[buffer(30)]]) {}"),
    "a buffer twice":
        ("kernel void k(device int *x [[buffer(1)]],\n              device int *y [[buffer(1)]]) {}",
         "constant bool b [[function_constant(0)]];\n"
         "kernel void k(device int *x [[buffer(1)]],\n"
         "              device int *y [[buffer(1), function_constant(b)]]) {}"),
    "too much threadgroup memory":
        ("threadgroup float4 t[2049]; t[i] = c[i]; x[i] = t[0].x;",
         "threadgroup float4 t[2048]; t[i] = c[i]; x[i] = t[0].x;"),
    "a name twice":
        ('[[host_name("k")]] kernel void f(device int *x) {}\n'
         '[[host_name("k")]] kernel void g(device int *x) {}',
         '[[host_name("k")]] kernel void f(device int *x) {}\n'
         '[[host_name("l")]] kernel void g(device int *x) {}'),
    "a function called main": (_before("void main() {}"), _before("void mains() {}")),
}  # fmt: skip

#: Accepted by all: texts that look like violations and are none.
FINE = {
    "assert": "assert(i < 9);",
    "pointers to threadgroup memory in a struct":
        _before("template <typename P> struct Rows { P first; };\n"
                "void f(threadgroup int *m) { const Rows<threadgroup int *> rows{m}; "
                "rows.first[0] = 1; }", "threadgroup int m[1]; f(m); x[i] = m[0];"),
    "recursion, which Metal 2.4 introduced for kernels":
        _before("int f(int n) { return n ? n * f(n - 1) : 1; }", "x[i] = f(i);"),
    "recursion through another function":
        _before("int g(int n);\nint f(int n) { return n ? n + g(n - 1) : 1; }\n"
                "int g(int n) { return 2 * f(n); }", "x[i] = g(i);"),
    "recursion before the program runs":
        _before("constexpr int log2(int n) { return n > 1 ? 1 + log2(n / 2) : 0; }",
                "constexpr int n = log2(32); float a[log2(16)] = {}; x[i] = a[0] + n;"),
    "lambdas, which Metal 3.2 introduced": "auto f = [&](int n) { return x[n]; }; x[i] = f(1);",
    "samplers at program scope":
        _before("constexpr sampler nearest(filter::nearest);\nconstexpr sampler s = sampler();"),
    "unions": "union { float f; uint u; } v; v.f = 1; x[i] = v.u;",
    "builtins": "x[i] = __builtin_ctz(i) + INFINITY + NAN;",
    "attributes of functions":
        _before("static inline __attribute__((always_inline)) int f() { return 1; }"),
    "a struct copied from another space":
        _before("struct A { float v[3]; };\nvoid g(A a) {}\n"
                f"kernel void h(device A *a, constant A &b, {ID}) {{ A c = a[i]; a[0] = b; g(c); }}"),
    "operators of the standard library": "x[i] = (c[i] + c[0]).xy.x * dot(c[i], c[1]);",
}  # fmt: skip


def rules():
    """``name -> (refused, fine)``."""
    return {name: (_with_kernel(bad), _with_kernel(good)) for name, (bad, good) in RULES.items()}


def fine():
    """``name -> text``."""
    return {name: _with_kernel(text) for name, text in FINE.items()}
