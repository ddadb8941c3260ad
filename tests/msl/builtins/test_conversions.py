"""Conversions: every scalar type to every other where the value is defined, and as_type.

Integers become integers modulo 2^bits, floats become integers towards zero (within the target's
range: the language promises no saturation), numbers become floats with one rounding to nearest
even, and bool holds whether a value is not zero. Vectors convert component by component.
"""

import numpy as np
import pytest
from float_operands import any_floats
from judges import rounded
from msl_types import DTYPES, FLOATS, INTEGERS, SCALARS, vector
from sheets import Row, Sheet

import metalloid as mtl


def as_double(integers):
    """Integers as float64 that round like them to 24 bits or fewer: a lost bit leaves its trace."""

    def sticky(value):
        shift = max(abs(value).bit_length() - 50, 0)
        magnitude = abs(value)
        bits = magnitude >> shift | (magnitude & ((1 << shift) - 1) != 0)
        return float(bits << shift) * (-1 if value < 0 else 1)

    return np.frompyfunc(sticky, 1, 1)(integers.astype(object)).astype(np.float64)


def converted(x, type_):
    """`x` as the type: what the specification says of it."""
    if type_ == "bool":
        return x != 0
    if type_ in FLOATS:
        return x.astype(np.float64) if x.dtype.kind not in "iu" else as_double(x)
    if x.dtype.kind in "iub":
        return x.astype(DTYPES[type_])
    return np.trunc(x.astype(np.float64)).astype(DTYPES[type_])


def values_for(source, target, rng):
    """Values of `source` whose conversion to `target` is defined."""
    if source == "bool":
        return rng.random(300) < 0.5
    if source in INTEGERS:
        info = np.iinfo(DTYPES[source])
        some = rng.integers(info.min, info.max, 600, DTYPES[source], endpoint=True)
        some >>= rng.integers(0, info.bits, 600).astype(DTYPES[source])
        edges = [info.min, info.max, info.max // 2, info.max // 2 + 1, 0, 1]
        halfway = [
            v for v in (2**24 + 1, 2**25 + 2, 2**11 + 1, 257, 259, 65519, 65520) if v <= info.max
        ]
        return np.concatenate([some, np.array([*edges, *halfway], DTYPES[source])])
    (any_value,) = any_floats(1, source, rng)
    if target not in INTEGERS:
        return any_value
    info = np.iinfo(DTYPES[target])
    magnitude = 2.0 ** rng.uniform(-2, info.bits - (info.min < 0), 800)
    wide = np.concatenate([magnitude, [0.0, 0.5, 0.999, 1.0]])
    wide = np.concatenate([wide, -wide]) if info.min < 0 else wide
    x = rounded(wide, DTYPES[source])
    integers = np.trunc(x.astype(np.float64))
    return x[
        (integers >= float(info.min))
        & (integers <= float(info.max))
        & (integers < 2.0**63 * (1 + (info.min == 0)))
    ]


def widths(source, target):
    """The vector width tested for a pair, in turn."""
    return 2 + (SCALARS.index(source) + SCALARS.index(target)) % 3


FORMS = {
    "cast": "{T}(x)", "c_style": "({T})x", "static_cast": "static_cast<{T}>(x)", "implicit": "{T} t = x; y = t;",
    "assigned": "y = 0; y = x;",
}  # fmt: skip


#: Between the two 16-bit floats only an explicit conversion is one.
EXPLICIT = ("cast", "static_cast")


def sheets(source):
    """From one type to all others, as scalars in every form and as vectors; per target a row each."""
    inputs, rows = {}, []
    for target in SCALARS:
        x, lanes = f"{source}_{target}", widths(source, target)
        forms = EXPLICIT if {source, target} == {"half", "bfloat"} else list(FORMS)
        form = FORMS[forms[SCALARS.index(target) % len(forms)]]
        v = vector(target, lanes)
        inputs[x] = source
        oracle = named(x, lambda values, target=target: converted(values, target))
        rows.append(Row(target, form.format(T=target).replace("x", x), oracle))
        of_vector = named(
            x, lambda values, t=target, n=lanes: np.repeat(converted(values, t)[:, None], n, 1)
        )
        rows.append(Row(v, f"{v}({vector(source, lanes)}({x}))", of_vector))

    def data(rng):
        columns = {f"{source}_{target}": values_for(source, target, rng) for target in SCALARS}
        size = max(map(len, columns.values()))
        return {name: np.resize(values, size) for name, values in columns.items()}

    half = len(SCALARS) // 2
    names = list(inputs)
    for part, chosen in enumerate((names[:half], names[half:])):
        yield Sheet(
            f"{source}-{part}",
            {name: inputs[name] for name in chosen},
            data,
            [row for row in rows if row.oracle.names[0] in chosen],
        )


def named(name, function):
    function.names = (name,)
    return function


@pytest.mark.parametrize("sheet", [s for source in SCALARS for s in sheets(source)], ids=str)
@pytest.mark.sample(3)
def test_conversions(sheet, kernel):
    sheet.check(kernel)


# -- as_type: the same bits

SIZES = {name: DTYPES[name].itemsize for name in SCALARS if name != "bool"}
LANES = (1, 2, 4)


def same_bits(target, lanes):
    def oracle(x):
        bits = np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8)
        values = bits.view(DTYPES[target])
        return values[:, 0] if lanes == 1 else values

    return oracle


def bit_rows(source, lanes):
    size = SIZES[source] * lanes
    for target, bytes_ in SIZES.items():
        for other in LANES:
            if bytes_ * other == size:
                T = vector(target, other)
                yield Row(T, f"as_type<{T}>(x)", same_bits(target, other))
    if size in (2, 4):
        T, bytes_ = vector(source, lanes), vector("uchar", size)
        yield Row(T, f"as_type<{T}>(as_type<{bytes_}>(x))", same_bits(source, lanes))


def bit_sheet(source, lanes):
    def data(rng):
        bits = rng.integers(0, 256, (400, SIZES[source] * lanes), np.uint8)
        values = bits.view(DTYPES[source])
        return {"x": values[:, 0].copy() if lanes == 1 else values}

    T = vector(source, lanes)
    return Sheet(f"as_type-{T}", {"x": T}, data, list(bit_rows(source, lanes)))


@pytest.mark.parametrize("sheet", [bit_sheet(t, n) for t in SIZES for n in LANES], ids=str)
@pytest.mark.sample(4)
def test_as_type(sheet, kernel):
    sheet.check(kernel)


THREE = Sheet(
    "as_type-of-three",
    {"x": "float3", "h": "half3"},
    lambda rng: {
        "x": rng.integers(0, 256, (100, 12), np.uint8).view(np.float32),
        "h": rng.integers(0, 256, (100, 6), np.uint8).view(np.float16),
    },
    [
        Row("uint3", "as_type<uint3>(x)", lambda x: np.ascontiguousarray(x).view(np.uint32)),
        Row("int3", "as_type<int3>(x)", lambda x: np.ascontiguousarray(x).view(np.int32)),
        Row("ushort3", "as_type<ushort3>(h)", lambda h: np.ascontiguousarray(h).view(np.uint16)),
        Row("float3", "as_type<float3>(as_type<uint3>(x))", lambda x: x),
    ],
)


@pytest.mark.parametrize("sheet", [THREE], ids=str)
def test_as_type_of_three(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.parametrize(("source", "target"), [("half", "bfloat"), ("bfloat", "half")])
def test_c_style_casts_between_half_and_bfloat(source, target):
    x = np.array([0.5, -3, 1000, 0.1], DTYPES[source])
    y = np.zeros(4, DTYPES[target])
    mtl.library(
        f"kernel void f(device {target}* y, device const {source}* x,"
        f" uint i [[thread_position_in_grid]]) {{ y[i] = -({target})x[i] * ({target})2; }}"
    ).f(y, x, threads=4)
    expected = (-2 * x.astype(np.float32)).astype(DTYPES[target])
    assert y.tobytes() == expected.tobytes()
