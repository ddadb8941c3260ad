"""`Kernel.dtype`: NumPy's dtypes of structs as clang lays them out, and arrays of other dtypes."""

import functools
import random

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
SCALARS = {
    "bool": np.bool_, "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16,
    "int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "half": np.float16,
    "float": np.float32, "bfloat": ml_dtypes.bfloat16,
}  # fmt: skip
STRUCTS = 8


def struct(number):
    """The text of a random struct, and its members: name, type, components and elements."""
    rng = random.Random(number)
    members = []
    for index in range(rng.randint(2, 6)):
        scalar = rng.choice(list(SCALARS))
        lanes = rng.choice([1, 2, 3, 4]) if scalar != "bool" else 1
        packed = "packed_" if lanes > 1 and scalar != "bool" and rng.random() < 0.3 else ""
        name = packed + scalar + (str(lanes) if lanes > 1 else "")
        members.append((f"m{index}", name, scalar, lanes, rng.choice([0, 0, 1, 3])))
    body = " ".join(f"{t} {n}{f'[{count}]' if count else ''};" for n, t, _, _, count in members)
    return f"struct S{number} {{ {body} }};", members


def assignments(members):
    """Statements that give each component another value."""
    value = 0
    for name, _, _, lanes, count in members:
        for element in range(count or 1):
            for lane in range(lanes):
                value += 1
                subscript = f"[{element}]" if count else ""
                component = f".{'xyzw'[lane]}" if lanes > 1 else ""
                yield f"s[i].{name}{subscript}{component} = {value};", (name, element, lane, value)


@functools.cache
def kernels():
    texts = [HEADER]
    for number in range(STRUCTS):
        text, members = struct(number)
        body = " ".join(statement for statement, _ in assignments(members))
        texts.append(f"""{text}
        kernel void k{number}(device S{number}* s, device ulong* size, uint i [[thread_position_in_grid]])
        {{ {body} size[0] = sizeof(S{number}); }}""")
    return mtl.library("".join(texts))


@pytest.mark.parametrize("number", range(STRUCTS))
def test_members_lie_where_the_kernel_writes_them(number):
    kernel, (_, members) = kernels()[f"k{number}"], struct(number)
    dtype = kernel.dtype("s")
    array, size = np.zeros(3, dtype), np.zeros(1, np.uint64)
    kernel(array, size, threads=3)
    assert dtype.itemsize == size[0]
    assert dtype.names == tuple(name for name, *_ in members)
    for name, _, scalar, _, _ in members:
        assert dtype[name].base.base == np.dtype(SCALARS[scalar])
    for _, (name, element, lane, value) in assignments(members):
        _, _, scalar, lanes, count = next(m for m in members if m[0] == name)
        at = (element,) * bool(count) + (lane,) * (lanes > 1)
        expected = np.array(value).astype(SCALARS[scalar])
        assert (array[name][(slice(None), *at)] == expected).all(), (name, element, lane)


def test_dtypes_of_every_kind_of_parameter():
    kernel = mtl.library(
        HEADER
        + """
        struct Inner { half h; device float* p; };
        struct Outer { float3x3 m; Inner inner[2]; texture2d<float> t; };
        struct Bits { uint low : 3; };
        kernel void f(device float3* v, constant Outer& o, device Bits* b, device void* x, constant int& n,
                      device atomic_uint* a, texture2d<float> t, threadgroup half4x4* g) {}"""
    ).f
    assert kernel.dtype("v") == kernel.dtype(0) == np.dtype((np.float32, 4))
    outer = kernel.dtype("o")
    assert outer["m"] == np.dtype((np.float32, (3, 4)))
    assert outer["inner"].shape == (2,)
    assert outer["inner"].base == np.dtype(
        {"names": ["h", "p"], "formats": [np.float16, np.uint64], "offsets": [0, 8], "itemsize": 16}
    )
    assert outer["t"] == np.uint64
    assert kernel.dtype("b") == np.dtype("V4")  # bit-fields have no offset
    assert kernel.dtype("x") == np.dtype("V1")
    assert (kernel.dtype("n"), kernel.dtype("a")) == (np.int32, np.uint32)
    assert kernel.dtype("g") == np.dtype((np.float16, (4, 4)))
    for name in ("t", "nobody", 8):
        with pytest.raises(mtl.ArgumentError, match="has no parameter"):
            kernel.dtype(name)


def at(**fields):
    """A dtype of 32 bytes with these fields: format and offset."""
    return np.dtype(
        {
            "names": list(fields),
            "formats": [format_ for format_, _ in fields.values()],
            "offsets": [offset for _, offset in fields.values()],
            "itemsize": 32,
        }
    )


#: Dtypes that may stand for `struct { float2 at; uint n; bool on; float4 v; }`.
FITTING = {
    "the same": at(at=("2f4", 0), n=("u4", 8), on=("?", 12), v=("4f4", 16)),
    "in another order": at(v=("4f4", 16), n=("u4", 8), at=("2f4", 0)),
    "a complex number": at(at=("c8", 0)),
    "a byte for a bool": at(on=("u1", 12)),
    "other names": at(a=("i8", 3), b=("f8", 24)),
    "bytes": np.dtype("V32"),
    "a part of a vector": at(v=("3f4", 16)),
}
OTHER = {
    "another place": at(n=("u4", 12)),
    "another type": at(n=("f4", 8)),
    "another sign": at(n=("i4", 8)),
    "another size": at(n=("u8", 8)),
    "more components": at(at=("3f4", 0)),
    "packed": np.dtype([("at", "2f4"), ("n", "u4"), ("on", "?"), ("v", "4f4")]),
}


@functools.cache
def particles():
    return mtl.library(
        HEADER
        + """struct Particle { float2 at; uint n; bool on; float4 v; };
        kernel void f(device Particle* p) { p[0].n = 7; }"""
    ).f


@pytest.mark.parametrize("name", FITTING)
def test_structured_arrays_that_fit(name):
    array = np.zeros(2, FITTING[name])
    particles()(array, threads=1)
    assert array.view(np.uint32)[2] == 7


@pytest.mark.parametrize("name", OTHER)
def test_structured_arrays_of_another_layout_are_refused(name):
    with pytest.raises(
        mtl.ArgumentError,
        match=r"the struct holds float2 at at 0, .* 32 bytes; an element of the array .*"
        r"kernel\.dtype\('p'\)",
    ):
        particles()(np.zeros(2, OTHER[name]), threads=1)


def test_members_of_structs_in_structs_are_compared():
    kernel = mtl.library(
        HEADER
        + """struct In { int a, b; }; struct Out { In in; int c; };
        kernel void f(device Out* p) { p[0].in.b = 7; }"""
    ).f
    array = np.zeros(1, kernel.dtype("p"))
    kernel(array, threads=1)
    assert array["in"]["b"].item() == 7
    with pytest.raises(mtl.ArgumentError, match="the struct holds"):
        kernel(np.zeros(1, [("in", [("b", "i4"), ("a", "i4")]), ("c", "i4")]), threads=1)
