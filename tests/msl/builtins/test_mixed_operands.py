"""Calls whose operands differ: scalars among vectors, packed vectors, scalars of several types."""

import numpy as np
import pytest
from judges import ROUNDED, SAME_VALUE
from msl_types import DTYPES
from sheets import Row, Sheet

FLOAT = np.dtype(np.float32)


def d(x):
    return x.astype(np.float64)


def each(x):
    return d(x)[:, None]


def floats(rng):
    v, w = rng.normal(size=(2, 300, 3)).astype(FLOAT)
    s, t = rng.normal(size=(2, 300)).astype(FLOAT)
    return {
        "v": v,
        "w": w,
        "s": s,
        "t": t,
        "k": rng.integers(-9, 10, 300).astype(np.int32),
        "m": rng.random((300, 3)) < 0.5,
    }


VECTORS_AND_SCALARS = Sheet(
    "vectors-and-scalars",
    {"v": "float3", "w": "float3", "s": "float", "t": "float", "k": "int", "m": "bool3"},
    floats,
    [
        Row("float3", "min(v, s)", lambda v, s: np.minimum(v, s[:, None])),
        Row("float3", "max(s, v)", lambda v, s: np.maximum(v, s[:, None])),
        Row("float3", "max(v, 0)", lambda v: np.maximum(v, 0), SAME_VALUE),
        Row("float3", "clamp(v, 0.0f, 1.0f)", lambda v: np.clip(v, 0, 1), SAME_VALUE),
        Row("float3", "clamp(v, w, max(w, 0.5f))", lambda v, w: np.clip(v, w, np.maximum(w, 0.5))),
        Row("float3", "min3(v, s, w)", lambda v, s, w: np.minimum(np.minimum(v, s[:, None]), w)),
        Row("float3", "step(s, v)", lambda v, s: np.where(v < s[:, None], 0.0, 1.0)),
        Row("float3", "fma(v, s, w)", lambda v, s, w: d(v) * each(s) + w, ROUNDED),
        Row("float3", "pow(abs(v), 2.0f)", lambda v: d(v) ** 2, 16.0),
        Row("float3", "atan2(v, s)", lambda v, s: np.arctan2(d(v), each(s)), 6.0),
        Row("float3", "copysign(v, s)", lambda v, s: np.copysign(v, s[:, None])),
        Row("float3", "fmod(v, 0.25f)", lambda v: np.fmod(v, np.float32(0.25))),
        Row("float3", "select(v, 0.0f, m)", lambda v, m: np.where(m, 0.0, v)),
        Row("float3", "select(s, w, m)", lambda w, s, m: np.where(m, w, s[:, None])),
        Row("float3", "min(packed_float3(v), w)", lambda v, w: np.minimum(v, w)),
        Row("float3", "exp(packed_float3(v))", lambda v: np.exp(d(v)), 4.0),
        Row("float3", "abs(packed_float3(v))", lambda v: np.abs(v)),
        Row("float2", "max(v.xy, w.zy)", lambda v, w: np.maximum(v[:, :2], w[:, [2, 1]])),
        Row("float3", "ldexp(v, int3(k))", lambda v, k: np.ldexp(d(v), k[:, None])),
        Row("float", "ldexp(s, 3)", lambda s: d(s) * 8),
    ],
)  # fmt: skip


def limits_and_random(type_, rng):
    info = np.iinfo(DTYPES[type_])
    return np.concatenate(
        [
            rng.integers(info.min, info.max, 290, DTYPES[type_], endpoint=True),
            [info.min, info.max, 0, 1, 2, 3, 4, 5, 6, 7],
        ]
    ).astype(DTYPES[type_])


INTEGER_TYPES = {
    "n": "int",
    "u": "uint",
    "h": "short",
    "c": "char",
    "b": "uchar",
    "j": "long",
    "g": "ulong",
}


def integers(rng):
    values = {
        name: rng.permutation(limits_and_random(type_, rng))
        for name, type_ in INTEGER_TYPES.items()
    }
    return values | {
        "f": rng.normal(scale=100, size=300).astype(FLOAT),
        "e": rng.normal(scale=100, size=300).astype(np.float16),
    }


def as_uint(x):
    return x.astype(np.int64) & 0xFFFFFFFF


#: As in C++: the operands meet in their common type.
SCALARS_OF_MIXED_TYPES = Sheet(
    "scalars-of-several-types",
    INTEGER_TYPES | {"f": "float", "e": "half"},
    integers,
    [
        Row("int", "min(n, h)", lambda n, h: np.minimum(n, h)),
        Row("int", "max(c, h)", lambda c, h: np.maximum(c, h)),
        Row("uint", "min(n, u)", lambda n, u: np.minimum(as_uint(n), u)),
        Row("long", "max(n, j)", lambda n, j: np.maximum(n, j)),
        Row("int", "clamp(n, 0, 255)", lambda n: np.clip(n, 0, 255)),
        Row("int", "clamp(h, -5, c)", lambda h, c: np.minimum(np.maximum(h, -5), c.astype(int))),
        Row("int", "min3(c, h, n)", lambda c, h, n: np.minimum(np.minimum(c, h), n)),
        Row("int", "median3(b, 10, 20)", lambda b: np.clip(b, 10, 20)),
        Row("float", "max(f, 0)", lambda f: np.maximum(f, 0), SAME_VALUE),
        Row("float", "min(e, f)", lambda e, f: np.minimum(e.astype(FLOAT), f)),
        Row("float", "fma(e, f, 1)", lambda e, f: d(e) * d(f) + 1, ROUNDED),
        Row("half", "max(e, 1.0h)", lambda e: np.maximum(e, np.float16(1))),
        Row("float", "floor(h)", lambda h: d(h)),
        Row("float", "sqrt(b)", lambda b: np.sqrt(d(b))),
        Row("float", "pow(2.0f, 3)", lambda f: np.full(f.shape, 8.0)),
        Row("float", "sign(c)", lambda c: np.sign(d(c))),
        Row("int", "rotate(n, 5)", lambda n: ((n.view(np.uint32) << np.uint32(5)) | (n.view(np.uint32) >> np.uint32(27))).view(np.int32)),
        Row("int", "addsat(n, 1)", lambda n: np.minimum(n.astype(np.int64) + 1, 2**31 - 1)),
        Row("uint", "absdiff(u, 7u)", lambda u: np.abs(u.astype(np.int64) - 7)),
        Row("int", "mulhi(n, 65536)", lambda n: n >> 16),
        Row("float", "select(1.0f, 2.0f, n > 0)", lambda n: np.where(n > 0, 2.0, 1.0)),
    ],
)  # fmt: skip


@pytest.mark.parametrize("sheet", [VECTORS_AND_SCALARS, SCALARS_OF_MIXED_TYPES], ids=str)
def test_mixed_operands(sheet, kernel):
    sheet.check(kernel)
