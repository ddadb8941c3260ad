"""Type traits, each in its class and its `_v` or `_t` form; utilities: array, pair, uniform, swap."""

import numpy as np
import pytest
from msl_types import DTYPES, FLOATS, INTEGERS, SCALARS, SIGNED, vector
from sheets import HEADER, Row, Sheet

import metalloid as mtl

#: Names for the traits to ask about: an enumeration, classes, a union and a template.
DECLARATIONS = """
enum Color { red, green };
enum class Small : ushort { zero };
struct Point { float x; int y; };
struct Base { int b; };
struct Derived : Base { int d; Derived(int v) { b = d = v; } };
struct Sealed final { int b; };
union Word { uint u; float f; };
typedef void Function(int);
"""

#: Trait, and the types of which it holds; `EVERY` are all that are asked.
TRAITS = {
    "is_integral": {*INTEGERS, "bool", "const int", "size_t"},
    "is_floating_point": {*FLOATS, "const float"},
    "is_arithmetic": {*INTEGERS, *FLOATS, "bool", "const int", "const float", "size_t"},
    "is_signed": {*SIGNED, *FLOATS, "const int", "const float"},
    "is_unsigned": {*(set(INTEGERS) - set(SIGNED)), "bool", "size_t"},
    "is_enum": {"Color", "Small"},
    "is_class": {"Point", "Base", "Derived", "Sealed"},
    "is_union": {"Word"},
    "is_void": {"void", "const void"},
    "is_pointer": {"device float*", "thread int*", "constant int*"},
    "is_array": {"int[3]", "float[]"},
    "is_function": {"Function"},
    "is_reference": {"device int&", "thread float&"},
    "is_lvalue_reference": {"device int&", "thread float&"},
    "is_rvalue_reference": set(),
    "is_const": {"const int", "const float", "const void"},
    "is_volatile": {"volatile int"},
    "is_fundamental": {*INTEGERS, *FLOATS, "bool", "void", "const int", "const float", "const void", "volatile int", "size_t"},
    "is_vector": {"float4", "half2", "bool3"},
    "is_final": {"Sealed"},
    "is_polymorphic": set(),
}  # fmt: skip
TRAITS["is_integral"].add("volatile int")
TRAITS["is_arithmetic"].add("volatile int")
TRAITS["is_signed"].add("volatile int")
TRAITS["is_scalar"] = TRAITS["is_arithmetic"] | TRAITS["is_enum"] | TRAITS["is_pointer"]
EVERY = sorted(set().union(*TRAITS.values()) | set(SCALARS))

#: Expressions that hold, about types made from types.
SAME = {
    "remove_const_t<const int>": "int", "remove_const<int>::type": "int", "remove_volatile_t<volatile int>": "int",
    "remove_cv_t<const volatile float>": "float", "remove_reference_t<thread int&>": "int", "remove_reference<int>::type": "int",
    "remove_pointer_t<thread int*>": "int", "remove_extent_t<int[3]>": "int", "add_const_t<int>": "const int",
    "add_volatile_t<int>": "volatile int", "add_cv_t<int>": "const volatile int", "decay_t<const thread int&>": "int",
    "enable_if_t<true, float>": "float", "enable_if<true>::type": "void", "conditional_t<true, int, float>": "int",
    "conditional<false, int, float>::type": "float", "make_unsigned_t<int>": "uint", "make_signed_t<ushort>": "short",
    "make_unsigned<char>::type": "uchar", "make_signed_t<ulong>": "long", "common_type_t<int, float>": "float",
    "common_type_t<short, int>": "int", "common_type_t<half, float>": "float", "common_type_t<char>": "char",
    "common_type_t<int, half, float>": "float", "underlying_type_t<Small>": "ushort", "decltype(declval<Point>().y)": "int",
    "invoke_result_t<thread float (*)(int), int>": "float", "integral_constant<int, 3>::value_type": "int",
    "decltype(int4() < int4())": "bool4", "decltype(float2() * 2)": "float2", "decltype(float4().xyz)": "float3",
    "make_scalar_t<float4>": "float", "make_scalar_t<packed_half3>": "half", "make_scalar<ushort>::type": "ushort",
    "decltype(float3x2()[0])": "thread float2&",
}  # fmt: skip
HOLDING = [
    "is_convertible_v<int, float>", "!is_convertible_v<Point, int>", "is_convertible<float, half>::value",
    "is_base_of_v<Base, Derived>", "!is_base_of_v<Derived, Base>", "is_constructible_v<Derived, int>",
    "!is_constructible_v<Derived>", "is_default_constructible_v<Base>", "!is_default_constructible_v<Derived>",
    "is_copy_constructible_v<Derived>", "is_trivially_copyable_v<Point>", "is_standard_layout_v<Point>",
    "!is_standard_layout_v<Derived>", "is_aggregate_v<Point>", "!is_aggregate_v<Derived>", "is_same_v<int, int>",
    "!is_same_v<int, uint>", "!is_same<half, bfloat>::value", "true_type::value", "!false_type()", "bool_constant<true>::value",
    "integral_constant<int, 3>::value == 3", "integral_constant<int, 3>() == 3", "conjunction_v<true_type, true_type>",
    "!conjunction_v<true_type, false_type>", "disjunction_v<false_type, true_type>", "negation_v<false_type>",
    "alignment_of_v<float3> == 16", "alignment_of<packed_float3>::value == 4", "vec_elements_v<float3> == 3",
    "vec_elements<int>::value == 1", "is_trivial_v<Point>", "is_assignable_v<thread int&, float>",
]  # fmt: skip


def holds(expected):
    return lambda x: np.full(x.shape, expected)


def threads(rng):
    return {"x": np.zeros(4, np.int32)}


@pytest.fixture(scope="module")
def answers():
    """The traits of all types: an array by trait, form (`_v` and class) and type."""
    forms = ("{}_v<{}>", "{}<{}>::value")
    questions = [form.format(trait, type_) for trait in TRAITS for form in forms for type_ in EVERY]
    text = "\n".join(f"y[{j}] = {question};" for j, question in enumerate(questions))
    lib = mtl.library(f"{HEADER}{DECLARATIONS}kernel void ask(device bool* y) {{\n{text}\n}}")
    y = np.zeros(len(questions), bool)
    lib.ask(y, threads=1)
    return y.reshape(len(TRAITS), len(forms), len(EVERY))


@pytest.mark.parametrize("trait", TRAITS)
def test_unary_traits(trait, answers):
    for form in answers[list(TRAITS).index(trait)]:
        types = {type_ for type_, answer in zip(EVERY, form, strict=True) if answer}
        if trait == "is_class":  # vectors are classes here and built into Apple's compiler
            types -= TRAITS["is_vector"]
        assert types == TRAITS[trait]


def sheets():
    rows = [Row("bool", f"is_same_v<{text}, {type_}>", holds(True)) for text, type_ in SAME.items()]
    rows += [Row("bool", text, holds(True)) for text in HOLDING]
    for start in range(0, len(rows), 25):
        yield Sheet(
            f"traits-{start}",
            {"x": "int"},
            threads,
            rows[start : start + 25],
            declarations=DECLARATIONS,
        )


UTILITIES = [
    Row("int", "array<int, 3> a = {1, 2, 3}; y = a[0] + 10 * a.front() + 100 * a.back() + 1000 * int(a.size());", holds(3311)),
    Row("int", "array<int, 4> a; a.fill(7); a[2] = 1; y = 0; for (int v : a) y = 10 * y + v;", holds(7717)),
    Row("int", "array a{x, x + 1}; y = a.data()[1] + (a.begin() == a.data()) + int(a.end() - a.begin());", lambda x: x + 4),
    Row("int", "array<float, 5> a; y = int(size(a)) * 10 + a.empty() + int(a.max_size()) * 100;", holds(550)),
    Row("int", "array<array<int, 2>, 2> a = {{{1, 2}, {3, 4}}}; y = a[1][0];", holds(3)),
    Row("int", "pair<int, float> p{x, 2.5f}; y = p.first + int(p.second * 2);", lambda x: x + 5),
    Row("int", "auto p = make_pair(short(x), half(3)); y = p.first + int(p.second) + 10 * int(sizeof(p));", lambda x: x + 43),
    Row("int", "int a = 1, b = 2; swap(a, b); y = 10 * a + b;", holds(21)),
    Row("int", "float3 a = 1, b = 2; swap(a, b); y = int(a.x * 10 + b.z);", holds(21)),
    Row("int", "uniform<int> u = 5; y = u + make_uniform(x);", lambda x: x + 5),
    Row("int", "Point p = {1.5f, 4}; y = addressof(p)->y;", holds(4)),
    Row("int", "y = int(sizeof(Point)) + int(sizeof(array<short, 3>));", holds(14)),
    Row("int", "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst); assert(x == 0); y = 1;", holds(1)),
]  # fmt: skip


@pytest.mark.parametrize("sheet", [*sheets()], ids=str)
def test_type_traits(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.parametrize(
    "sheet",
    [Sheet("utilities", {"x": "int"}, threads, UTILITIES, declarations=DECLARATIONS)],
    ids=str,
)
def test_utilities(sheet, kernel):
    sheet.check(kernel)


def test_traits_are_constants():
    """They decide while compiling: in static_assert, array sizes and `if constexpr`."""
    lib = mtl.library(
        f"""{HEADER}
        static_assert(is_same_v<make_unsigned_t<short>, ushort>, "traits");
        static_assert(numeric_limits<half>::max() == HALF_MAX, "limits");
        template <typename T> int kind(T) {{
            if constexpr (is_floating_point_v<T>) {{ return 1; }}
            else if constexpr (is_vector_v<T>) {{ return 2; }}
            else {{ return 0; }}
        }}
        kernel void f(device int* y) {{
            int sized[is_integral_v<int> ? 2 : -1] = {{kind(1.0h), kind(int2(1))}};
            y[0] = kind(1) + 10 * sized[0] + 100 * sized[1];
        }}"""
    )
    y = np.zeros(1, np.int32)
    lib.f(y, threads=1)
    assert y[0] == 210


def test_structs_of_c_linkage():
    """Headers that are shared with a host of C; such structs are filled by name all the same."""
    lib = mtl.library(
        f"""{HEADER}
        extern "C" struct Size {{ uint n; }};
        extern "C" {{
        typedef struct {{ float scale; float4 v; }} Args;
        struct Both {{ Args args; struct Size size; struct Inner {{ int k; }} inner; }};
        static inline uint twice(uint n) {{ struct Local {{ uint n; }} l = {{n}}; return 2 * l.n; }}
        kernel void f(device float* y, constant Both& both, constant Size& size) {{
            y[0] = both.args.scale * both.args.v.y + twice(both.size.n) + both.inner.k + size.n;
        }}
        }}"""
    )
    y = np.zeros(1, np.float32)
    both = {"args": {"scale": 2, "v": [1, 10, 0, 0]}, "size": {"n": 50}, "inner": {"k": 200}}
    lib.f(y, both, {"n": 1000}, threads=1)
    assert y[0] == 20 + 100 + 200 + 1000


def test_system_is_a_mac():
    """TargetConditionals.h defines all of its macros: a text may ask by #ifdef as well as by #if."""
    lib = mtl.library(
        """#include <TargetConditionals.h>
        #ifndef TARGET_OS_SIMULATOR
        #error no header
        #endif
        #if !TARGET_OS_MAC || !TARGET_OS_OSX || TARGET_OS_IPHONE || TARGET_OS_SIMULATOR
        #error no Mac
        #endif
        kernel void f(device int* y) { y[0] = TARGET_CPU_ARM64 + 10 * TARGET_RT_LITTLE_ENDIAN; }"""
    )
    y = np.zeros(1, np.int32)
    lib.f(y, threads=1)
    assert y[0] == 11


def test_arguments_of_indirect_commands():
    """Structs of the host's that a kernel fills; a launch takes them by name."""
    lib = mtl.library(
        f"""{HEADER}
        kernel void f(device MTLDispatchThreadgroupsIndirectArguments& groups,
                      device MTLDrawIndexedPrimitivesIndirectArguments* draws,
                      constant MTLStageInRegionIndirectArguments& region,
                      constant MTLDispatchThreadsIndirectArguments& threads,
                      constant MTLDrawPrimitivesIndirectArguments& draw) {{
            groups = {{{{region.stageInSize[0], threads.threadsPerThreadgroup[2], draw.baseInstance}}}};
            draws[1].baseVertex = -4;
        }}"""
    )
    groups = np.zeros(1, [("threadgroupsPerGrid", np.uint32, 3)])
    draws = np.zeros(2, [(name, np.int32) for name in "abcde"])
    lib.f(
        groups,
        draws,
        {"stageInOrigin": [0, 0, 0], "stageInSize": [7, 0, 0]},
        {"threadsPerGrid": [0, 0, 0], "threadsPerThreadgroup": [0, 0, 8]},
        {"vertexCount": 0, "instanceCount": 0, "vertexStart": 0, "baseInstance": 9},
        threads=1,
    )
    assert groups["threadgroupsPerGrid"].tolist() == [[7, 8, 9]]
    assert draws["d"].tolist() == [0, -4]


def test_enable_if_takes_overloads_away():
    source = """
        template <typename T, enable_if_t<is_integral_v<T>, int> = 0> int of(T) { return 1; }
        template <typename T, enable_if_t<is_floating_point_v<T>, int> = 0> int of(T) { return 2; }
        kernel void f(device int* y) { y[0] = 10 * of(short(1)) + of(VALUE); }
    """
    y = np.zeros(1, np.int32)
    mtl.library(HEADER + source.replace("VALUE", "1.0f")).f(y, threads=1)
    assert y[0] == 12
    with pytest.raises(mtl.CompileError, match="no matching function"):
        mtl.library(HEADER + source.replace("VALUE", "y"))


SIMD_NAMES = [
    *(("simd::" + vector(t, n), vector(t, n)) for t in ("float", "half", "uint") for n in (2, 3, 4)),
    ("vector_float4", "float4"), ("simd_float3", "float3"), ("simd::float4x4", "float4x4"),
    ("matrix_float3x3", "float3x3"), ("simd::packed_float3", "packed_float3"), ("metal::float2", "float2"),
    ("vec<float, 3>", "float3"), ("matrix<half, 2, 3>", "half2x3"), ("packed_vec<int, 3>", "packed_int3"),
]  # fmt: skip


@pytest.mark.parametrize(
    "sheet",
    [
        Sheet("names", {"x": "int"}, threads, [Row("bool", f"is_same_v<{a}, {b}>", holds(True)) for a, b in SIMD_NAMES]),
        Sheet(
            "sizes",
            {"x": "int"},
            threads,
            [Row("int", f"int(sizeof({t}))", holds(DTYPES[t].itemsize)) for t in SCALARS]
            + [Row("int", f"int(sizeof({t}))", holds(size)) for t, size in (("float3x3", 48), ("half4x2", 16), ("float2x4", 32), ("size_t", 8), ("atomic_uint", 4), ("atomic_ulong", 8))],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_names_and_sizes(sheet, kernel):
    sheet.check(kernel)
