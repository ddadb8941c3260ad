"""Lowering, from text to text: each rule with the smallest text that shows it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metalloid.msl.entry_points import Parameter
from metalloid.msl.integers import integer_value
from metalloid.msl.lower import lower


def squeezed(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("source", "lowered"),
    [
        # numbers
        ("x = 2.0 * y;", "x = 2.0f * y;"),
        ("x = .5 + 1e3 + 0x1.8p3 + 1.f + 3 + 0x10;", "x = .5f + 1e3f + 0x1.8p3f + 1.f + 3 + 0x10;"),
        ("x = 1.0h;", "x = ((half)1.0f16);"),
        ("x = 2h;", "x = ((half)2.0f16);"),
        ("x = 1.5bf;", "x = ((bfloat)1.5f);"),
        ("int y = 1'000;", "int y = 1'000;"),
        # strings
        ('report("bad");', 'report(((constant char*)"bad"));'),
        ('static_assert(true, "fine");', 'static_assert(true, "fine");'),
        # threadgroup variables, but not pointers, references and functions
        ("{ threadgroup float a[4]; }", "{ static threadgroup float a[4]; }"),
        ("{ threadgroup vec<float, 4> a; }", "{ static threadgroup vec<float, 4> a; }"),
        ("{ threadgroup float* p = q; }", "{ threadgroup float* p = q; }"),
        ("{ threadgroup float& r = q; }", "{ threadgroup float& r = q; }"),
        ("{ alignas(16) threadgroup float a[4]; }", "{ static alignas(16) threadgroup float a[4]; }"),
        ("{ f(); threadgroup int n = 1, m; }", "{ f(); static threadgroup int n = 1, m; }"),
        # parameters of array type
        ("void f(constant float x[2], device int y[3][4]);",
         "void f(constant float *x, device int (*y)[4]);"),
        ("void f(constant float (&x)[2]);", "void f(constant float (&x)[2]);"),
        # attributes
        ("[[maybe_unused]] int x;", "[[maybe_unused]] int x;"),
        ("[[clang::optnone]] int x;", "int x;"),
        ('[[host_name("f")]] kernel void g();', "void g();"),
        ("int f(int x [[buffer(0)]]);", "int f(int x );"),
        ('[[host_name("g")]] kernel void f() {}', "void f() {}"),
        # 16-bit floats convert to each other only with help, where both occur
        ("bfloat b; x = half(b);", "bfloat b; x = METALLOID_CAST<half>(b);"),
        ("x = half(b);", "x = half(b);"),
        ("bfloat b; x = -(half)b[i].x * 2;", "bfloat b; x = -METALLOID_CAST<half>(b[i].x) * 2;"),
        ("bfloat b; x = (half)-f(b) + y;", "bfloat b; x = METALLOID_CAST<half>(-f(b)) + y;"),
        ("half h; x = (half)(bfloat)h;", "half h; x = METALLOID_CAST<half>(METALLOID_CAST<bfloat>(h));"),
        ("bfloat b; int n = sizeof(half); f(half);", "bfloat b; int n = sizeof(half); f(half);"),
        ("typedef bfloat B; half h; y = B(h);", "typedef bfloat B; half h; y = METALLOID_CAST<B>(h);"),
        # instances whose template arguments clang deduces
        ('template <typename T> kernel void f(device T* x) {}\n'
         'template [[host_name("g")]] [[kernel]] void f(device int* x [[buffer(0)]]);',
         "template <typename T> void f(device T* x) {} constexpr auto& metalloid_instance_0 = "
         "static_cast< void (&)(device int* x )>(::f);"),
        # qualifiers without meaning here
        ("coherent(device) device int* x;", "device int* x;"),
        ("void f(coherent device int* x);", "void f( device int* x);"),
        ("void f(device coherent vec<int, 2>& x);", "void f(device vec<int, 2>& x);"),
        ("void f(const coherent x, device coherent* y);", "void f(const coherent x, device coherent* y);"),
        ("float coherent = 1; y = coherent(device_of(x));", "float coherent = 1; y = coherent(device_of(x));"),
        # functions keep the linkage of C
        ('extern "C" int f(int);', 'extern "C" int f(int);'),
        # pragmas whose count is a macro
        ("#define N 4\n#pragma unroll(N)\nfor (;;) {}", "#pragma unroll for (;;) {}"),
        ("#pragma unroll(4)\nfor (;;) {}", "#pragma unroll(4) for (;;) {}"),
    ],
)  # fmt: skip
def test_text(source, lowered):
    assert squeezed(lower(source).text) == squeezed(lowered)


def test_member_functions_that_differ_by_space_become_one():
    text = lower(
        """struct A {
        A() thread = default; A() threadgroup = default;
        operator float() const thread { return x; }
        operator float() const device { return x; }
        device float& operator[](int i) device { return p[i]; }
        threadgroup float& operator[](int i) threadgroup { return p[i]; }
        float get(int i) const { return x; }
        float get(int i) const threadgroup { return x; }
        float get(float i) const threadgroup { return x; }
        };"""
    ).text
    assert text.count("operator float") == 1
    assert text.count("operator[]") == 1
    assert text.count("A()") == 1
    assert text.count("get(int i)") == 1
    assert text.count("get(float i)") == 1
    assert text.count("\n") == 9


@pytest.mark.parametrize(
    ("members", "refused"),
    [
        ("float get() const { return x; } float get() const device { return x + 1; }", True),
        ("float get() thread { return x; } float get() device { return p->x; }", True),
        # A variable in device memory would call the function for `thread`.
        ("float get() { return x; } float get() const device { return x + 1; }", True),
        ("float get() { return x; } float get() const constant { return x + 1; }", False),
        ("float get() { return x; } float get() const { return y; }"
         "float get() device { return x; } float get() const device { return y; }", False),
        ("float get() const; float get() const device { return x; }", False),
        ("device T& get() device { return static_cast<device T&>(x); }"
         "threadgroup T& get() threadgroup { return static_cast<threadgroup T&>(x); }", False),
    ],
)  # fmt: skip
def test_overloads_by_the_space_of_this_have_equal_bodies(members, refused):
    assert ("static_assert" in lower(f"struct A {{ {members} }};").text) == refused


def kernels(source):
    return {kernel.name: kernel for kernel in lower(source).kernels}


@pytest.mark.parametrize(
    "declaration",
    ["kernel void f(", "[[kernel]] void f(", "[[kernel, max_total_threads_per_threadgroup(64)]] void f(",
     "[[host_name(\"f\")]] kernel void g(", "static kernel void f("],
)  # fmt: skip
def test_kernels_are_recognised_in_all_their_forms(declaration):
    (kernel,) = lower(f"{declaration}device float* x [[buffer(0)]]) {{}}").kernels
    assert kernel.name == "f"
    assert kernel.expression in ("f", "g")
    assert kernel.limits.max_total == (64 if "64" in declaration else None)


@pytest.mark.parametrize(
    ("argument", "size"),
    [("8, 4, 2", (8, 4, 2)), ("2 * 4, 4", (8, 4, 1)), ("0x20", (32, 1, 1)), ("N, 1, 1", None)],
)
def test_required_threads(argument, size):
    head = f"[[kernel, required_threads_per_threadgroup({argument})]]"
    (kernel,) = lower(f"{head} void f(device float* x) {{}}").kernels
    assert kernel.limits.size == size


def test_namespaces_and_instantiations():
    by_name = kernels(
        """namespace a { namespace b {
        template <typename T, int N = 2> [[kernel]] void scale(device T* x [[buffer(0)]],
            uint i [[thread_position_in_grid]]) {}
        template [[host_name("scale_f")]] [[kernel]] decltype(scale<float>) scale<float>;
        } }
        template [[host_name("scale_h")]] kernel void a::b::scale<half, 4>(device half*, uint);
        """
    )
    assert by_name["scale_f"].expression == "a::b::scale<float>"
    assert by_name["scale_h"].expression == "a::b::scale<half, 4>"
    assert [p.name for p in by_name["scale_h"].parameters] == ["x", "i"]
    assert by_name["scale_f"].line == 4


def test_instances_may_be_named_from_the_outermost_namespace():
    by_name = kernels(
        """namespace a { template <typename T> kernel void scale(device T* x) {}
        namespace b { template [[host_name("f")]] kernel void :: a ::scale<float>(device float*); } }
        template [[host_name("h")]] kernel void ::a::scale<half>(device half*);
        """
    )
    assert by_name["f"].expression == "a::scale<float>"
    assert by_name["h"].expression == "a::scale<half>"


def test_a_declaration_says_nothing_about_the_parameters():
    by_name = kernels(
        """template <typename T> kernel void scale(device T* x, uint i);
        template [[host_name("f")]] kernel void scale<float>(device float*, uint);
        template <typename T> kernel void scale(device T* x, uint i [[thread_position_in_grid]]) {}
        kernel void g(uint i);
        kernel void g(uint i [[thread_position_in_grid]]) {}
        """
    )
    for kernel in by_name.values():
        assert kernel.parameters[-1].attribute("thread_position_in_grid") is not None


def test_other_stages_are_no_kernels():
    result = lower("vertex float4 v(uint i [[vertex_id]]) { return 0; } fragment half4 f() {}")
    assert result.kernels == ()
    assert result.other_stages == {"v": "vertex", "f": "fragment"}


def test_words_that_only_look_like_stages():
    result = lower("struct kernel { int x; }; int f(int kernel) { return kernel + object.mesh; }")
    assert result.kernels == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device float* in [[buffer(0)]]", Parameter("in", "device float* in", (("buffer", "0"),))),
        ("constant float (&t)[4]", Parameter("t", "constant float (&t)[4]", ())),
        ("uint [[thread_position_in_grid]]", Parameter("", "uint", (("thread_position_in_grid", ""),))),
        ("const device ns::S<int, 2>& s", Parameter("s", "const device ns::S<int, 2>& s", ())),
        ("texture2d<float, access::read> t [[texture(1)]]",
         Parameter("t", "texture2d<float, access::read> t", (("texture", "1"),))),
        ("constant float* w [[buffer(1), function_constant(c)]]",
         Parameter("w", "constant float* w", (("buffer", "1"), ("function_constant", "c")))),
    ],
)  # fmt: skip
def test_parameters(text, expected):
    assert lower(f"kernel void f({text}) {{}}").kernels[0].parameters == (expected,)


def test_function_constants_are_left_to_macros():
    result = lower(
        "constant int n [[function_constant(3)]];\n"
        "constant bool has_n = is_function_constant_defined(n);"
    )
    (constant,) = result.constants
    assert (constant.name, constant.index, constant.type) == ("n", 3, "int")
    assert "METALLOID_FUNCTION_CONSTANT_3;" in result.text
    assert "= METALLOID_FUNCTION_CONSTANT_3_IS_DEFINED;" in result.text
    assert constant.definitions("7")[0].endswith(" = 7")


@pytest.mark.parametrize(
    ("text", "index"),
    [("7", 7), ("012u", 10), ("0x1F", 31), ("1'00", 100), ("1200 + 3", 1203), ("2 * (8 - 1) / 3 % 3", 1), ("-(-4)", 4),
     ("N", None), ("1 / 0", None), ("f(2)", None), ("", None), ("1.0", None), ("2 ** 9", None)],
)  # fmt: skip
def test_indices_are_arithmetic_on_integers(text, index):
    assert integer_value(text) == index
    constants = lower(f"constant int n [[function_constant({text})]];").constants
    assert [constant.index for constant in constants] == ([] if index is None else [index])


def test_storage_of_a_function_constant_is_not_its_type():
    result = lower("static constant constexpr const bool on [[function_constant(0)]];")
    assert result.constants[0].literal(True) == "bool(true)"


FRAGMENTS = st.sampled_from(
    ["kernel", "void", "f", "(", ")", "{", "}", "[[", "]]", "buffer(0)", "device", "float", "*",
     "threadgroup", "template", "<", ">", "T", ";", ",", "constant", "x", "[2]", "1.0", '"s"', ":",
     "host_name", "decltype", "operator", "const", "thread", "::", "namespace", "\n", "half", "bfloat",
     "function_constant(1)", "is_function_constant_defined", "#pragma unroll(N)", "?", "static_cast"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=40))
@example(["template", "kernel"])
def test_nonsense_is_left_for_clang_to_report(fragments):
    source = " ".join(fragments)
    assert lower(source).text.count("\n") == source.count("\n")


def test_ids_outside_of_kernels_are_refused():
    import metalloid as mtl

    with pytest.raises(mtl.CompileError, match="make gid one") as error:
        mtl.library(
            "uint gid [[thread_position_in_grid]];\nkernel void f(device uint* x) { x[gid] = gid; }"
        )
    assert error.value.lineno == 1
