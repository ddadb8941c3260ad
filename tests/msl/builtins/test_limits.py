"""numeric_limits against NumPy's iinfo and finfo, for scalars and vectors, and the macros."""

import ml_dtypes
import numpy as np
import pytest
from msl_types import DTYPES, FLOATS, INTEGERS, SCALARS, vector
from sheets import Row, Sheet


def always(value):
    """An oracle: `value` in every thread."""
    return lambda x: np.full(x.shape, value)


def integer_facts(type_):
    info = np.iinfo(DTYPES[type_]) if type_ != "bool" else None
    lowest, highest, bits = (int(info.min), int(info.max), info.bits) if info else (0, 1, 1)
    values = {"min()": lowest, "lowest()": lowest, "max()": highest, "epsilon()": 0, "denorm_min()": 0,
              "infinity()": 0, "quiet_NaN()": 0, "round_error()": 0}  # fmt: skip
    digits = bits - (lowest < 0)
    facts = {
        "digits": digits, "digits10": len(str(2**digits - 1)) - 1, "radix": 2, "is_signed": lowest < 0,
        "is_integer": True, "is_exact": True, "has_infinity": False, "has_quiet_NaN": False,
        "is_specialized": True, "min_exponent": 0, "max_exponent": 0,
    }  # fmt: skip
    return values, facts


def float_facts(type_):
    info = ml_dtypes.finfo(DTYPES[type_])
    highest, tiny = float(info.max), float(info.tiny)
    values = {
        "min()": tiny, "lowest()": -highest, "max()": highest, "epsilon()": float(info.eps),
        "denorm_min()": float(info.smallest_subnormal), "infinity()": np.inf, "quiet_NaN()": np.nan,
        "signaling_NaN()": np.nan, "round_error()": 0.5,
    }  # fmt: skip
    facts = {
        "digits": info.nmant + 1, "digits10": int(np.floor(info.nmant * np.log10(2))), "radix": 2,
        "is_signed": True, "is_integer": False, "is_exact": False, "has_infinity": True,
        "has_quiet_NaN": True, "is_specialized": True,
        "min_exponent": int(np.log2(tiny)) + 1, "max_exponent": int(np.frexp(highest)[1]),
        "min_exponent10": int(np.ceil(np.log10(tiny))), "max_exponent10": int(np.floor(np.log10(highest))),
    }  # fmt: skip
    return values, facts


def limits_sheet(type_):
    values, facts = float_facts(type_) if type_ in FLOATS else integer_facts(type_)
    rows = [
        Row(type_, f"numeric_limits<{type_}>::{name}", always(value))
        for name, value in values.items()
    ]
    rows += [
        Row("int", f"numeric_limits<{type_}>::{name}", always(int(value)))
        for name, value in facts.items()
    ]
    rows.append(Row(type_, f"metal::numeric_limits<const {type_}>::max()", always(values["max()"])))
    return Sheet(f"limits-{type_}", {"x": "int"}, some_threads, rows)


def some_threads(rng):
    return {"x": np.arange(5, dtype=np.int32)}


def vector_limits_sheet(type_):
    values, _ = float_facts(type_) if type_ in FLOATS else integer_facts(type_)
    T = vector(type_, 3)
    rows = [
        Row(
            T,
            f"numeric_limits<{T}>::{name}",
            lambda x, value=values[name]: np.full((x.size, 3), value),
        )
        for name in ("min()", "max()", "lowest()", "epsilon()", "infinity()")
    ]
    return Sheet(f"limits-{T}", {"x": "int"}, some_threads, rows)


MACROS = {
    "int": {
        "CHAR_BIT": 8, "SCHAR_MAX": 127, "SCHAR_MIN": -128, "CHAR_MAX": 127, "CHAR_MIN": -128, "UCHAR_MAX": 255,
        "SHRT_MAX": 2**15 - 1, "SHRT_MIN": -(2**15), "USHRT_MAX": 2**16 - 1, "INT_MAX": 2**31 - 1, "INT_MIN": -(2**31),
        "FLT_DIG": 6, "FLT_MANT_DIG": 24, "FLT_MAX_EXP": 128, "FLT_MIN_EXP": -125, "FLT_RADIX": 2,
        "FLT_MAX_10_EXP": 38, "FLT_MIN_10_EXP": -37, "HALF_DIG": 3, "HALF_MANT_DIG": 11,
        "HALF_MAX_EXP": 16, "HALF_MIN_EXP": -13, "HALF_MAX_10_EXP": 4, "HALF_MIN_10_EXP": -4,
        "FP_ILOGB0": -(2**31), "FP_ILOGBNAN": -(2**31),
    },
    "uint": {"UINT_MAX": 2**32 - 1},
    "long": {"LONG_MAX": 2**63 - 1, "LONG_MIN": -(2**63)},
    "ulong": {"ULONG_MAX": 2**64 - 1},
    "float": {
        "FLT_MAX": float(np.finfo("f").max), "FLT_MIN": 2.0**-126, "FLT_EPSILON": 2.0**-23, "MAXFLOAT": float(np.finfo("f").max),
        "INFINITY": np.inf, "HUGE_VALF": np.inf, "NAN": np.nan, "M_E_F": np.e, "M_LOG2E_F": 1 / np.log(2), "M_LOG10E_F": 1 / np.log(10),
        "M_LN2_F": np.log(2), "M_LN10_F": np.log(10), "M_PI_F": np.pi, "M_PI_2_F": np.pi / 2, "M_PI_4_F": np.pi / 4,
        "M_1_PI_F": 1 / np.pi, "M_2_PI_F": 2 / np.pi, "M_2_SQRTPI_F": 2 / np.sqrt(np.pi), "M_SQRT2_F": np.sqrt(2), "M_SQRT1_2_F": np.sqrt(0.5),
    },
    "half": {
        "HALF_MAX": 65504, "HALF_MIN": 2.0**-14, "HALF_EPSILON": 2.0**-10, "MAXHALF": 65504, "HUGE_VALH": np.inf,
        "M_E_H": np.e, "M_PI_H": np.pi, "M_PI_2_H": np.pi / 2, "M_PI_4_H": np.pi / 4, "M_1_PI_H": 1 / np.pi, "M_2_PI_H": 2 / np.pi,
        "M_LN2_H": np.log(2), "M_LN10_H": np.log(10), "M_LOG2E_H": 1 / np.log(2), "M_LOG10E_H": 1 / np.log(10),
        "M_2_SQRTPI_H": 2 / np.sqrt(np.pi), "M_SQRT2_H": np.sqrt(2), "M_SQRT1_2_H": np.sqrt(0.5),
    },
    "bfloat": {
        "BFLT_MAX": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), "BFLT_MIN": 2.0**-126, "BFLT_EPSILON": 2.0**-7, "HUGE_VALBF": np.inf,
        "M_E_BF": np.e, "M_PI_BF": np.pi, "M_LN2_BF": np.log(2), "M_SQRT2_BF": np.sqrt(2), "M_2_SQRTPI_BF": 2 / np.sqrt(np.pi),
    },
}  # fmt: skip


def macro_sheets():
    for type_, macros in MACROS.items():
        rows = [Row(type_, name, always(value)) for name, value in macros.items()]
        yield Sheet(f"macros-{type_}", {"x": "int"}, some_threads, rows)


SHEETS = [
    *(limits_sheet(type_) for type_ in SCALARS),
    *(vector_limits_sheet(type_) for type_ in (*INTEGERS, *FLOATS)),
    *macro_sheets(),
]


@pytest.mark.parametrize("sheet", SHEETS, ids=str)
@pytest.mark.sample(6)
def test_limits(sheet, kernel):
    sheet.check(kernel)
