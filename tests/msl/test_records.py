"""Which members the lowering finds in the structs of a text."""

import re

import pytest

from metalloid.msl.lower import lower

RECORDS = {
    "struct A { int x; };": ["x"],
    "struct A { int x, *y; float z[3], w[N < 4 ? 2 : 1][4]; };": ["x", "y", "z", "w"],
    "struct A { device float* x [[id(0)]]; array<texture2d<float>, 4> t [[id(1)]]; };": ["x", "t"],
    "struct A { map<int, float> m; unsigned int n = 3; float2 v{1, 2}; };": ["m", "n", "v"],
    "struct A { int f(int x) { return x; } A() : x(1), y{2} {} int x, y; ~A(); };": ["x", "y"],
    "struct A { int operator()(int i) const { return i; } operator bool() const; int x; };": ["x"],
    "struct A { A() = default; template <typename T> T get(T t) { return t; } int x; };": ["x"],
    "struct A { static constexpr constant int n = 3; using T = float; typedef int I; T x; };": ["x"],
    "class A { int x; public: float y; private: int z; };": ["x", "y", "z"],
    "struct A { enum E { a, b }; enum class F : int { c } f; struct B { int q; } b; };":
        [["q"], ["f", "b"]],
    "struct alignas(16) A { alignas(8) int x; decltype(0) y; };": ["x", "y"],
    "template <typename T, int N> struct A { T x[N]; };": ["x"],
    "template <> struct A<float> { float x; };": ["x"],
    "typedef struct { int x; } A;": ["x"],
    'extern "C" struct A { int x; };': ["x"],
    'extern "C" { int f(int); typedef struct { int x; } A; int n; }': ["x"],
    "namespace a { namespace b { struct A { int x; }; } }": ["x"],
    "struct A {};": [],
    "struct A { friend struct B; int x; };": ["x"],
    "struct A { struct B* next; const struct B& other; int x; };": ["next", "other", "x"],
}  # fmt: skip

WITHOUT = [
    "struct A;",
    "enum class A { x };",
    "union A { int x; };",
    "template <class T, class U> void f(T t) {}",
    "void f() { struct A { int x; } a; }",
    "struct { int x; } a;",
    "struct A f(struct A a) { return a; }",
    "struct A make = { 1 };",
]

#: Not told, and not taken from a base.
UNKNOWN = [
    "struct A { uint low : 3; };",
    "struct A { union { int x; float y; }; };",
    "struct A { __extension__ union { int x; float y; }; int z; };",
    "struct A : B { int x; };",
]


def members(text):
    records = [
        re.findall(r'"(\w+)"', body)
        for body in re.findall(r"metalloid_members\(M_& m\) \{(.*?)\} ", lower(text).text)
    ]
    return records[0] if len(records) == 1 else records


@pytest.mark.parametrize("text", RECORDS)
def test_members(text):
    assert members(text) == RECORDS[text]
    assert lower(text).text.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", WITHOUT)
def test_no_struct_with_a_name(text):
    assert "metalloid_members" not in lower(text).text


@pytest.mark.parametrize("text", UNKNOWN)
def test_members_that_cannot_be_told(text):
    assert "struct metalloid_members;" in lower(text).text
    assert members(text) == []
