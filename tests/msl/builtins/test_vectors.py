"""Vectors: constructors, swizzles, components, packed vectors."""

from itertools import product

import numpy as np
import pytest
from msl_types import DTYPES, vector
from sheets import HEADER, Row, Sheet

import metalloid as mtl

ELEMENTS = (
    "float",
    "half",
    "bfloat",
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "long",
    "ulong",
    "bool",
)


def joined(*parts):
    """Vectors and scalars side by side."""
    return np.concatenate([p[:, None] if p.ndim == 1 else p for p in parts], axis=1)


def splat(lanes):
    return lambda s: np.repeat(s[:, None], lanes, axis=1)


def with_names(function, *names):
    wrapper = lambda *values: function(*values)  # noqa: E731
    wrapper.names = names
    return wrapper


def constructor(type_, lanes, *parts):
    """The row for a vector made of `parts`, whose names say how wide they are."""
    text = f"{vector(type_, lanes)}({', '.join(parts)})"
    return Row(vector(type_, lanes), text, with_names(joined, *parts))


def constructor_rows(type_):
    yield from (Row(vector(type_, n), f"{vector(type_, n)}(s)", splat(n)) for n in (2, 3, 4))
    yield from (constructor(type_, n, f"v{n}") for n in (2, 3, 4))
    yield constructor(type_, 2, "s", "t")
    yield constructor(type_, 3, "s", "t", "s")
    yield constructor(type_, 3, "v2", "s")
    yield constructor(type_, 3, "s", "v2")
    yield constructor(type_, 4, "s", "t", "t", "s")
    yield constructor(type_, 4, "v2", "s", "t")
    yield constructor(type_, 4, "s", "v2", "t")
    yield constructor(type_, 4, "s", "t", "v2")
    yield constructor(type_, 4, "v2", "w2")
    yield constructor(type_, 4, "v3", "s")
    yield constructor(type_, 4, "s", "v3")
    yield Row(vector(type_, 3), "y = {s, t, s};", lambda s, t: joined(s, t, s))
    yield Row(vector(type_, 2), "y = {s, t};", lambda s, t: joined(s, t))
    yield Row(vector(type_, 4), "y = s;", splat(4))
    yield Row(vector(type_, 3), "y = v3; y[i % 3] = s;", at_turn)
    yield Row(type_, "v4[i % 4]", lambda v4: v4[np.arange(len(v4)), np.arange(len(v4)) % 4])


def at_turn(v3, s):
    result = v3.copy()
    rows = np.arange(len(s))
    result[rows, rows % 3] = s
    return result


def of_any_value(inputs, type_):
    def data(rng):
        sizes = {name: (100, int(name[1])) if len(name) > 1 else 100 for name in inputs}
        if type_ == "bool":
            return {name: rng.random(size) < 0.5 for name, size in sizes.items()}
        return {
            name: rng.integers(0, 100, size).astype(DTYPES[type_]) for name, size in sizes.items()
        }

    return data


def constructor_sheet(type_):
    inputs = {"s": type_, "t": type_, "w2": vector(type_, 2)} | {
        f"v{n}": vector(type_, n) for n in (2, 3, 4)
    }
    return Sheet(
        f"constructors-{type_}", inputs, of_any_value(inputs, type_), list(constructor_rows(type_))
    )


def packed_sheet(type_):
    """Members of packed vectors, and what converts to and from them."""
    inputs = (
        {"s": type_} | {f"v{n}": vector(type_, n) for n in (2, 3, 4)} | {"w3": vector(type_, 3)}
    )
    P, T = f"packed_{type_}", type_
    rows = [
        Row(f"{T}3", f"{P}3 p = v3; p.y = s; y = p;", lambda v3, s: joined(v3[:, 0], s, v3[:, 2])),
        Row(f"{T}4", f"{P}4 p = v4; p[2] = s; y = {T}4(p);", lambda v4, s: joined(v4[:, :2], s, v4[:, 3])),
        Row(T, f"{P}2 p(v2); y = p[1];", lambda v2: v2[:, 1]),
        Row(T, f"{P}3 p(v3); y = p.z;", lambda v3: v3[:, 2]),
        Row(f"{T}2", f"{P}3 p(v3); y = p.zx;", lambda v3: v3[:, [2, 0]]),
        Row(f"{T}3", f"{P}4 p(v4); p.xz = v2; y = p.zwx;", lambda v4, v2: joined(v2[:, 1], v4[:, 3], v2[:, 0])),
        Row(f"{T}4", f"{P}3 p(v3); y = {T}4(p, s);", lambda v3, s: joined(v3, s)),
        Row(f"{T}3", f"{P}3 p[2]; p[0] = v3; p[1] = w3; y = p[i & 1];", lambda v3, w3: np.where(np.arange(len(v3))[:, None] % 2, w3, v3)),
        Row("uint", f"uint(sizeof({P}2) + 100 * sizeof({P}3) + 10000 * sizeof({P}4))", lambda s: np.full(s.shape, 40302 * DTYPES[T].itemsize)),
        Row("uint", f"uint(sizeof({T}2) + 100 * sizeof({T}3) + 10000 * sizeof({T}4))", lambda s: np.full(s.shape, 40402 * DTYPES[T].itemsize)),
        Row("uint", f"uint(alignof({P}3) + 100 * alignof({T}3) + 10000 * alignof({T}4))", lambda s: np.full(s.shape, 40401 * DTYPES[T].itemsize)),
    ]  # fmt: skip
    return Sheet(f"packed-{type_}", inputs, of_any_value(inputs, type_), rows)


SHEETS = [
    *(constructor_sheet(type_) for type_ in ELEMENTS),
    *(packed_sheet(type_) for type_ in ELEMENTS if type_ != "bool"),
]


@pytest.mark.parametrize("sheet", SHEETS, ids=str)
@pytest.mark.sample(3)
def test_vectors(sheet, kernel):
    sheet.check(kernel)


# -- swizzles: every word there is

ALPHABETS = ("xyzw", "rgba")
CODES = {
    lanes: f"uint code(T{lanes} v) {{ return {' + '.join(f'{10**j} * uint(v[{j}])' for j in range(lanes))}; }}"
    for lanes in (2, 3, 4)
}


def words(lanes, repeat=True):
    """Indices of components, as tuples: every swizzle that reads or writes a vector of `lanes`."""
    for length in (2, 3, 4):
        for indices in product(range(lanes), repeat=length):
            if repeat or len(set(indices)) == length:
                yield indices


def spelled(indices, alphabet):
    return "".join(alphabet[index] for index in indices)


def swizzle_library(type_):
    """Reads and writes of every word; a vector's code has a decimal digit for each component."""
    kernels = []
    for lanes in (2, 3, 4):
        reads = [f"code(v.{spelled(p, a)})" for a in ALPHABETS for p in words(lanes)]
        writes = [
            f"T{lanes} u = v; u.{spelled(p, a)} = T{len(p)}({', '.join('5678'[: len(p)])}); y[{{}}] = code(u);"
            for a in ALPHABETS
            for p in words(lanes, repeat=False)
        ]
        body = "".join(f"y[{j}] = {read};\n" for j, read in enumerate(reads))
        body += "".join(f"{{ {write.format(len(reads) + j)} }}\n" for j, write in enumerate(writes))
        kernels.append(
            f"kernel void swizzles{lanes}(device uint* y, device const {type_}* x) {{\n"
            f"T{lanes} v({', '.join(f'x[{j}]' for j in range(lanes))});\n{body}}}\n"
        )
    types = "".join(f"typedef {vector(type_, n)} T{n};\n" for n in (2, 3, 4))
    return mtl.library(HEADER + types + "\n".join(CODES.values()) + "\n" + "".join(kernels))


def expected_codes(lanes):
    x = [1, 2, 3, 4][:lanes]

    def code(values):
        return sum(10**index * value for index, value in enumerate(values))

    for _ in ALPHABETS:
        yield from (code([x[index] for index in indices]) for indices in words(lanes))
    for _ in ALPHABETS:
        for indices in words(lanes, repeat=False):
            u = list(x)
            for value, index in zip((5, 6, 7, 8), indices, strict=False):
                u[index] = value
            yield code(u)


@pytest.mark.parametrize(
    "type_",
    ["float", *(pytest.param(t, marks=pytest.mark.slow) for t in ("uchar", "half", "long"))],
)
def test_every_swizzle(type_):
    library = swizzle_library(type_)
    for lanes in (2, 3, 4):
        expected = np.array(list(expected_codes(lanes)), np.uint32)
        y = np.zeros_like(expected)
        library[f"swizzles{lanes}"](y, np.arange(1, 5).astype(DTYPES[type_]), threads=1)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("text", ["v.xx = v.yy", "v.xyx = v.xyz", "v.rr = v.xy"])
def test_a_word_with_a_repeated_letter_cannot_be_written(text):
    with pytest.raises(mtl.CompileError):
        mtl.library(
            f"{HEADER}kernel void f(device float4* x) {{ float4 v = x[0]; {text}; x[0] = v; }}"
        )


@pytest.mark.parametrize("text", ["v.z", "v.xz", "v.b", "v.xr", "v.q"])
def test_a_word_names_the_vectors_own_components_of_one_alphabet(text):
    with pytest.raises(mtl.CompileError):
        mtl.library(
            f"{HEADER}kernel void f(device float2* x) {{ float2 v = x[0]; x[1] = float2({text}); }}"
        )


SWIZZLED = Sheet(
    "swizzled-operands",
    {"v": "float4", "w": "float3", "s": "float"},
    lambda rng: {"v": rng.normal(size=(100, 4)).astype("f"), "w": rng.normal(size=(100, 3)).astype("f"), "s": rng.normal(size=100).astype("f")},
    [
        Row("float4", "y = v; y.xy += w.yz;", lambda v, w: joined(v[:, :2] + w[:, 1:], v[:, 2:])),
        Row("float4", "y = v; y.wz *= s;", lambda v, s: joined(v[:, :2], v[:, 2:] * s[:, None])),
        Row("float4", "y = v; y.rgb -= w;", lambda v, w: joined(v[:, :3] - w, v[:, 3])),
        Row("float3", "v.xyz + w", lambda v, w: v[:, :3] + w),
        Row("float3", "w.zyx * v.wzy", lambda v, w: w[:, ::-1] * v[:, [3, 2, 1]]),
        Row("float", "v.xyz.zy.x", lambda v: v[:, 2]),
        Row("float2", "max(v.xy, v.zw)", lambda v: np.maximum(v[:, :2], v[:, 2:])),
        Row("float4", "y = float4(v.bgr, s);", lambda v, s: joined(v[:, 2::-1], s)),
        Row("float4", "y = 0; y.x = s; y.a = w.b;", lambda s, w: joined(s, np.zeros_like(s), np.zeros_like(s), w[:, 2])),
        Row("bool2", "v.xy < v.zw", lambda v: v[:, :2] < v[:, 2:]),
        Row("float2", "thread float4& r = v; r.yz = -r.yz; y = v.yz;", lambda v: -v[:, 1:3]),
    ],
)  # fmt: skip


@pytest.mark.parametrize("sheet", [SWIZZLED], ids=str)
def test_swizzled_operands(sheet, kernel):
    sheet.check(kernel)
