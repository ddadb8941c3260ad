"""Constant addresses inside of variables, fills and copies of memory, and constants cast to others."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import variants
from metalloid.compiler.ir.constants import constant_bits, constant_of
from metalloid.compiler.ir.instruction_parser import Line
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, Integer, Struct, Unsupported
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors

SOURCE = """
#include <metal_stdlib>
using namespace metal;
#define PARAMETERS device float* y, device const float* x, constant int& n, \\
    uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]
struct V { float4 a; float b; };
struct W { int n; V q[2][8]; };
constant auto meet = mem_flags::mem_threadgroup;

kernel void members(PARAMETERS) {
    threadgroup V q[1][8];
    threadgroup W w[3];
    if (l < 8) {
        q[0][l].a = float4(x[i]); q[0][l].b = l;
        w[1].q[1][l].b = x[i] * 2;
    }
    threadgroup_barrier(meet);
    V v = q[0][1];
    y[i] = v.a.x + v.b + w[1].q[1][3].b;
}
kernel void pointers(PARAMETERS) {
    threadgroup float4 s[2][4];
    if (l < 4) s[1][l] = float4(x[i], 1, 2, 3);
    threadgroup_barrier(meet);
    threadgroup float4* p = s[1];
    y[i] = p[2].x + s[1][l & 3].y;
}
kernel void zeroed(PARAMETERS) {
    threadgroup V q[64];
    if (l == 0) for (int k = 0; k < 64; ++k) q[k] = {};
    threadgroup_barrier(meet);
    q[l].b += x[i];
    threadgroup_barrier(meet);
    y[i] = q[(l + 1) % 32].b + q[63].b + q[l].a.y;
}
kernel void filled_so_far(PARAMETERS) {
    threadgroup float s[1024];
    for (int k = 0; k < n * 10; ++k) s[k] = 0;
    threadgroup_barrier(meet);
    s[l] += x[i];
    threadgroup_barrier(meet);
    y[i] = s[(l + 1) % 32];
}
kernel void large_and_private(PARAMETERS) {
    float t[600] = {};
    for (int k = 0; k < n; ++k) t[(k * l) % 600] += x[k];
    float s = 0;
    for (int k = 0; k < 600; ++k) s += t[k] * k;
    y[i] = s;
}
kernel void private_for_some(PARAMETERS) {
    if (x[i] > 0) {
        float t[400] = {};
        t[(l * n) % 400] = x[i];
        float s = 0;
        for (int k = 0; k < 400; ++k) s += t[k];
        y[i] = s;
    }
}
kernel void bytes(device uchar* y, device const uchar* x, constant int& n, uint i [[thread_position_in_grid]]) {
    for (int k = 0; k < n; ++k) y[i * 8 + k] = x[i];
}
kernel void as_many_as_each_wants(device uint* y, constant int& n, uint i [[thread_position_in_grid]]) {
    for (int k = 0; k < int(i) % n; ++k) y[i * n + k] = 0;
}
kernel void halves_of_longs(device uint* y, uint i [[thread_position_in_grid]]) {
    long2 v = long2(31);
    v[0] = i;
    if (i & 1) v[1] = i * 3;
    y[i] = uint(v.x) + uint(v.y) * 7u;
}
"""


@pytest.fixture
def libraries(monkeypatch):
    monkeypatch.setattr(variants, "_MAX_THREADS_WITHOUT_MASKS", 0)
    pair = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            pair.append(mtl.library(SOURCE))
            [pair[-1][name] for name in pair[-1]]
    return pair


@pytest.mark.needs("the CPU")
def test_vector_code_agrees_with_the_reference_engine(libraries):
    rng = np.random.default_rng(8)
    x = rng.normal(size=128).astype(np.float32)
    given = {
        "bytes": lambda: (np.ones(1024, np.uint8), rng.integers(0, 255, 128, dtype=np.uint8), 7),
        "as_many_as_each_wants": lambda: (np.ones(128 * 9, np.uint32), 9),
        "halves_of_longs": lambda: (np.zeros(128, np.uint32),),
    }
    for name in libraries[1]:
        assert libraries[1][name].engine.startswith("simd"), (name, libraries[1][name].engine)
        arguments = given.get(name, lambda: (np.zeros(128, np.float32), x, 7))()
        for threads, group in ((96, 32), (64, 64), (45, 45)):
            expected, got = arguments[0].copy(), arguments[0].copy()
            for lib, y in zip(libraries, (expected, got), strict=True):
                lib[name](y, *arguments[1:], threads=threads, group_size=group)
            np.testing.assert_array_equal(got, expected, err_msg=name)
            assert (got != arguments[0]).any(), name


def expanded(text):
    """`text` as the operand of a load."""
    named = {"%V": Struct((FLOAT, Integer(64)))}
    return Line(text, named.__getitem__).value().name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ptr @g", "@g"),
        ("ptr getelementptr (i8, ptr @g, i64 0)", "@g"),
        ("ptr getelementptr inbounds nuw (i8, ptr @g, i64 12)", "@g 12"),
        ("ptr getelementptr (i8, ptr getelementptr (i8, ptr @g, i64 32), i64 -16)", "@g 16"),
        ("ptr getelementptr inbounds ([2 x [4 x %V]], ptr @g, i64 0, i64 1, i64 2, i32 1)", "@g 104"),
        ("ptr getelementptr (%V, ptr bitcast (ptr @g to ptr), i64 3)", "@g 48"),
        ("ptr bitcast (ptr getelementptr (i8, ptr @g, i64 4) to ptr)", "@g 4"),
        ("ptr inttoptr (i64 64 to ptr)", "inttoptr ( i64 64 to ptr )"),
    ],
)  # fmt: skip
def test_constant_addresses_have_one_form(text, expected):
    variable, *distance = expected.split() if expected[0] == "@" else [expected]
    if distance:
        variable = f"getelementptr ( i8 , ptr {variable} , i64 {distance[0]} )"
    assert expanded(text) == variable
    assert expanded(f"ptr {variable}") == variable  # as it is printed


CASTS = {
    "<2 x i64> <i64 poison, i64 4294967327> to <4 x i32>": ["poison", "poison", "31", "1"],
    "<4 x i32> <i32 1, i32 2, i32 poison, i32 -1> to <2 x i64>": ["8589934593", "-4294967296"],
    "<2 x float> <float 1.0, float -2.5> to <2 x i32>": ["1065353216", "-1071644672"],
    "<1 x i64> <i64 4607182418800017408> to <1 x double>": ["0x3FF0000000000000"],
    "<2 x i16> <i16 15360, i16 -17408> to <2 x half>": ["0xH3C00", "0xHBC00"],
    "<4 x i8> zeroinitializer to <2 x half>": ["0xH0000", "0xH0000"],
}


@pytest.mark.parametrize("text", CASTS)
def test_constant_casts_of_vectors(text):
    """They come to a phi from one side, where nothing could be computed."""
    of = text.split(" to ")[1]
    ir = (
        f"define void @f(ptr %p, i1 %c) {{\nentry:\n  %x = load {of}, ptr %p, align 1\n"
        f"  br i1 %c, label %a, label %b\na:\n  br label %b\nb:\n"
        f"  %v = phi {of} [ %x, %entry ], [ bitcast ({text}), %a ]\n"
        f"  store {of} %v, ptr %p, align 1\n  ret void\n}}\n"
    )
    function = parse_function(ir, "f")
    scalarize_vectors(function)
    phis = function.blocks["%b"].phis
    assert [phi.operands[phi.labels.index("%a")].name for phi in phis] == CASTS[text]


@pytest.mark.parametrize(
    ("type", "numpy"),
    [(HALF, np.float16), (FLOAT, np.float32), (DOUBLE, np.float64), (Integer(16), np.int16)],
    ids=str,
)
def test_constants_and_their_bits(type, numpy):
    size = numpy().itemsize
    unsigned = np.dtype(f"u{size}")
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2 ** (8 * size), 200, dtype=np.uint64 if size == 8 else np.uint32)
    for word in words.astype(unsigned):
        assert constant_bits(constant_of(int(word), type), type) == word
    for number in (0, 1, -1, 7):
        text = str(number) if isinstance(type, Integer) else f"{number}.0"
        assert constant_bits(text, type) == numpy(number).view(unsigned)


def test_constants_that_are_no_numbers():
    assert constant_bits("poison", FLOAT) is None
    assert constant_of(None, FLOAT) == "poison"
    assert constant_bits("true", Integer(1)) == 1
    assert constant_bits("0xR3F80", BFLOAT) == constant_bits("1.0", BFLOAT) == 0x3F80
    with pytest.raises(Unsupported):
        constant_bits("@g", Integer(64))
