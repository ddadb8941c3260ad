"""Pack and unpack functions.

A unorm of n bits is a float in [0, 1] times 2^n - 1, a snorm one in [-1, 1] times 2^(n-1) - 1,
saturated, rounded to the nearest even integer, the first component in the lowest bits; NaN packs as
zero. Fields of 8 bits and the 16-bit word are tested exhaustively, those of 16 bits with -m slow.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from judges import narrow_bound, rounded, unit
from msl_types import DTYPES, vector
from sheets import Row, Sheet

U = 2.0**-24  # roundoff of float


@dataclass(frozen=True)
class Format:
    """A packed format: its name in the functions, its word, the width of each field."""

    name: str
    word: str
    widths: tuple[int, ...]
    srgb: bool = False

    @property
    def signed(self):
        return "snorm" in self.name

    @property
    def unpacked_name(self):
        """Names of the two directions differ for sRGB."""
        return "unorm4x8_srgb" if self.srgb else self.name

    @property
    def packed_name(self):
        return "srgb_unorm4x8" if self.srgb else self.name

    def scales(self):
        return np.array([(1 << (w - self.signed)) - 1 for w in self.widths], np.float64)

    def fields(self, words):
        """The integers in words."""
        words = words.astype(np.int64)
        offsets = np.cumsum([0, *self.widths[:-1]])
        fields = [
            words >> int(o) & ((1 << w) - 1) for o, w in zip(offsets, self.widths, strict=True)
        ]
        if self.signed:
            fields = [
                (f ^ (1 << (w - 1))) - (1 << (w - 1))
                for f, w in zip(fields, self.widths, strict=True)
            ]
        return np.stack(fields, axis=-1)

    def word_of(self, fields):
        """Words from integers."""
        offsets = np.cumsum([0, *self.widths[:-1]])
        masks = np.array([(1 << w) - 1 for w in self.widths])
        return np.sum((fields.astype(np.int64) & masks) << offsets, axis=-1).astype(
            DTYPES[self.word]
        )

    def unpacked(self, words):
        values = np.maximum(self.fields(words) / self.scales(), -1.0)
        return np.concatenate([from_srgb(values[:, :3]), values[:, 3:]], 1) if self.srgb else values

    def scaled(self, values):
        """The values that are rounded to integers. The product is rounded to float first."""
        low = -1.0 if self.signed else 0.0
        values = np.where(np.isnan(values), 0.0, np.clip(values.astype(np.float64), low, 1.0))
        if self.srgb:
            values = np.concatenate([to_srgb(values[:, :3]), values[:, 3:]], 1)
        return values * self.scales()

    def packed(self, values):
        return self.word_of(np.rint(rounded(self.scaled(values), np.dtype(np.float32))))


def to_srgb(x):
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.power(np.maximum(x, 0), 1 / 2.4) - 0.055)


def from_srgb(x):
    return np.where(x <= 0.04045, x / 12.92, np.power((x + 0.055) / 1.055, 2.4))


FORMATS = [
    Format("unorm4x8", "uint", (8, 8, 8, 8)), Format("snorm4x8", "uint", (8, 8, 8, 8)),
    Format("unorm2x16", "uint", (16, 16)), Format("snorm2x16", "uint", (16, 16)),
    Format("unorm10a2", "uint", (10, 10, 10, 2)), Format("unorm565", "ushort", (5, 6, 5)),
]  # fmt: skip
SRGB = Format("srgb", "uint", (8, 8, 8, 8), srgb=True)


def words_of(format_, every):
    """Every value of every field, among random other fields."""

    def data(rng):
        if format_.word == "ushort":
            return {"words": np.arange(1 << 16, dtype=np.uint16)}
        step = 1 if every else 17
        fields = np.arange(0, 1 << max(format_.widths), step if max(format_.widths) > 10 else 1)
        columns = [rng.permutation(fields) for _ in format_.widths]
        return {"words": format_.word_of(np.stack(columns, axis=-1))}

    return data


def values_of(type_, format_):
    """Numbers inside and outside the range, the exact values, and those halfway between two."""

    def data(rng):
        lanes = len(format_.widths)
        columns = []
        for scale in format_.scales():
            steps = (
                np.arange(-scale, scale + 1) if scale < 2000 else rng.integers(-scale, scale, 3000)
            )
            special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                1.0001,
                -1.0001,
                2.0,
                -2.0,
                np.inf,
                -np.inf,
                np.nan,
                1e-30,
            ]
            values = [steps / scale, (steps + 0.5) / scale, special, rng.uniform(-1.2, 1.2, 1000)]
            columns.append(rng.permutation(np.resize(np.concatenate(values), 8000)))
        return {"values": np.stack(columns, axis=-1)[:, :lanes].astype(DTYPES[type_])}

    return data


def unpack_sheet(format_, every=False):
    lanes, name = len(format_.widths), format_.unpacked_name
    half_error = (
        narrow_bound(0.5, "half")
        if not format_.srgb
        else lambda words: srgb_error(format_, words, np.dtype(np.float16))
    )
    float_error = (
        None if not format_.srgb else lambda words: srgb_error(format_, words, np.dtype(np.float32))
    )
    rows = [
        Row(
            vector("float", lanes), f"unpack_{name}_to_float(words)", format_.unpacked, float_error
        ),
        Row(vector("half", lanes), f"unpack_{name}_to_half(words)", format_.unpacked, half_error),
        Row(
            format_.word,
            f"pack_float_to_{format_.packed_name}(unpack_{name}_to_float(words))",
            canonical(format_),
        ),
    ]
    if max(format_.widths) <= 8:  # more bits than half has
        rows.append(
            Row(
                format_.word,
                f"pack_half_to_{format_.packed_name}(unpack_{name}_to_half(words))",
                canonical(format_),
            )
        )
    return Sheet(f"unpack-{name}", {"words": format_.word}, words_of(format_, every), rows)


def canonical(format_):
    """Two snorm words mean -1; packing gives the one of them that is symmetric."""

    def oracle(words):
        return format_.word_of(np.maximum(format_.fields(words), -format_.scales()))

    return oracle


def srgb_error(format_, p, dtype):
    """powr's 16 ulp, and the roundings around it through the power 2.4."""
    exact = format_.unpacked(p)
    narrow = unit(exact, dtype) / 2 if dtype.itemsize == 2 else 0.0
    return 16 * unit(exact, np.dtype(np.float32)) + 4 * 2.4 * U * exact + narrow


def pack_sheet(format_, type_):
    T = vector(type_, len(format_.widths))
    rows = [Row(format_.word, f"pack_{type_}_to_{format_.packed_name}(values)", format_.packed)]
    return Sheet(
        f"pack-{format_.packed_name}-{type_}", {"values": T}, values_of(type_, format_), rows
    )


SHEETS = [
    *(unpack_sheet(format_) for format_ in (*FORMATS, SRGB)),
    *(pack_sheet(format_, type_) for format_ in FORMATS for type_ in ("float", "half")),
]


@pytest.mark.parametrize("sheet", SHEETS, ids=str)
@pytest.mark.sample(6)
def test_pack_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sheet", [unpack_sheet(format_, every=True) for format_ in FORMATS], ids=str
)
def test_unpack_every_value(sheet, kernel):
    sheet.check(kernel)


def srgb_pack_sheet(type_):
    """Where the exact value is not within the error of powr of a halfway point, there is one answer."""

    def fields(x):
        return np.rint(SRGB.scaled(x)).astype(np.int32)

    def is_clear(x):
        scaled = SRGB.scaled(x)
        return (np.abs(scaled - np.floor(scaled) - 0.5) > 255 * 40 * U).all(axis=1)

    def data(rng):
        x = values_of(type_, SRGB)(rng)["values"]
        return {"x": x[is_clear(x)]}

    text = f"uint p = pack_{type_}_to_srgb_unorm4x8(x); y = int4(p & 255, p >> 8 & 255, p >> 16 & 255, p >> 24);"
    return Sheet(f"pack-srgb-{type_}", {"x": vector(type_, 4)}, data, [Row("int4", text, fields)])


@pytest.mark.parametrize("sheet", [srgb_pack_sheet("float"), srgb_pack_sheet("half")], ids=str)
def test_pack_srgb(sheet, kernel):
    sheet.check(kernel)
