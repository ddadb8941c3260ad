"""Derivatives of MSL's functions: a row each.

``{x}`` is the argument of a function of one, ``{a}``, ``{b}``, ``{c}`` those of others, ``{y}`` the
result. Where a function has no derivative, at a kink, the row has one of both sides, or their mean.
"""

from __future__ import annotations

from metalloid.differentiate.lane_rules import CONSTANT_LANE_FUNCTIONS

#: The slope of the polynomial of `smoothstep`.
_PART = "saturate(({c} - {a}) / ({b} - {a}))"
_STEP = f"6 * {_PART} * (1 - {_PART})"
#: The argument that is the result, or the mean of those that are.
_TIES = " + ".join(f"{{bool}}({{{name}}} == {{y}})" for name in "abc")
_EXTREME = tuple(f"{{bool}}({{{name}}} == {{y}}) / ({_TIES})" for name in "abc")

#: The partial derivatives of functions that work element by element, one for each argument.
PARTIALS: dict[str, tuple[str, ...]] = {
    "sin": ("cos({x})",),
    "cos": ("-sin({x})",),
    "tan": ("1 + {y} * {y}",),
    "sinpi": ("3.14159265f * cospi({x})",),
    "cospi": ("-3.14159265f * sinpi({x})",),
    "asin": ("rsqrt(1 - {x} * {x})",),
    "acos": ("-rsqrt(1 - {x} * {x})",),
    "atan": ("1 / (1 + {x} * {x})",),
    "sinh": ("cosh({x})",),
    "cosh": ("sinh({x})",),
    "tanh": ("1 - {y} * {y}",),
    "asinh": ("rsqrt({x} * {x} + 1)",),
    "acosh": ("rsqrt({x} * {x} - 1)",),
    "atanh": ("1 / (1 - {x} * {x})",),
    "exp": ("{y}",),
    "exp2": ("0.693147181f * {y}",),
    "exp10": ("2.30258509f * {y}",),
    "log": ("1 / {x}",),
    "log2": ("1.44269504f / {x}",),
    "log10": ("0.434294482f / {x}",),
    "sqrt": ("0.5f / {y}",),
    "rsqrt": ("-0.5f * {y} / {x}",),
    "abs": ("sign({x})",),
    "fabs": ("sign({x})",),
    "fract": ("1",),
    "saturate": ("{bool}({x} > 0) * {bool}({x} < 1)",),
    "pow": ("{b} * pow({a}, {b} - 1)", "{y} * log(max({a}, 1.17549435e-38f))"),
    "powr": ("{b} * powr({a}, {b} - 1)", "{y} * log({a})"),
    "atan2": ("{b} / ({a} * {a} + {b} * {b})", "-{a} / ({a} * {a} + {b} * {b})"),
    "fmod": ("1", "-trunc({a} / {b})"),
    "max": ("0.5f * ({bool}({a} >= {b}) + {bool}({a} > {b}))",
            "0.5f * ({bool}({b} >= {a}) + {bool}({b} > {a}))"),
    "min": ("0.5f * ({bool}({a} <= {b}) + {bool}({a} < {b}))",
            "0.5f * ({bool}({b} <= {a}) + {bool}({b} < {a}))"),
    "copysign": ("sign({a}) * sign({y})", "0"),
    "fdim": ("{bool}({a} > {b})", "-{bool}({a} > {b})"),
    "fma": ("{b}", "{a}", "1"),
    "mad": ("{b}", "{a}", "1"),
    "mix": ("1 - {c}", "{c}", "{b} - {a}"),
    "divide": ("1 / {b}", "-{y} / {b}"),
    "tanpi": ("3.14159265f * (1 + {y} * {y})",),
    "ldexp": ("ldexp({bool}(1), {b})", "0"),
    "nextafter": ("1", "0"),
    "select": ("{bool}(!({c}))", "{bool}({c})", "0"),
    "smoothstep": (f"{_STEP} * ({{c}} - {{b}}) / (({{b}} - {{a}}) * ({{b}} - {{a}}))",
                   f"-{_STEP} * ({{c}} - {{a}}) / (({{b}} - {{a}}) * ({{b}} - {{a}}))",
                   f"{_STEP} / ({{b}} - {{a}})"),
    "clamp": ("{bool}({a} > {b}) * {bool}({a} < {c})", "{bool}({a} <= {b})", "{bool}({a} >= {c})"),
}  # fmt: skip
PARTIALS.update(dict.fromkeys(("max3", "min3", "median3", "fmax3", "fmin3", "fmedian3"), _EXTREME))
PARTIALS["fmax"], PARTIALS["fmin"] = PARTIALS["max"], PARTIALS["min"]

#: Functions whose results are kept for the reverse sweep.
COSTLY = frozenset(
    ("sin", "cos", "tan", "sinpi", "cospi", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
     "acosh", "atanh", "exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "pow",
     "powr", "atan2")
)  # fmt: skip

#: The function of ``metal/matrices.metal`` that multiplies matrices of a simdgroup.
MATRIX_PRODUCT = "simd_matrix_product"

#: Products of an adjoint ``{g}`` of the result and the derivatives by vectors.
VECTOR_PRODUCTS: dict[str, tuple[str, ...]] = {
    "dot": ("{g} * {b}", "{g} * {a}"),
    "length": ("{g} * {x} / {y}",),
    "length_squared": ("2 * {g} * {x}",),
    "distance": ("{g} * ({a} - {b}) / {y}", "{g} * ({b} - {a}) / {y}"),
    "distance_squared": ("2 * {g} * ({a} - {b})", "2 * {g} * ({b} - {a})"),
    "normalize": ("({g} - {y} * dot({y}, {g})) / length({x})",),
    "cross": ("cross({b}, {g})", "cross({g}, {a})"),
    "reflect": (
        "{g} - 2 * dot({b}, {g}) * {b}",
        "-2 * (dot({b}, {a}) * {g} + dot({b}, {g}) * {a})",
    ),
    "faceforward": ("{g} * (dot({c}, {b}) < 0 ? 1 : -1)", "0", "0"),
    MATRIX_PRODUCT: (
        "simd_matrix_product({g}, simd_matrix_transpose({b}))",
        "simd_matrix_product(simd_matrix_transpose({a}), {g})",
    ),
}

#: Tangents of the same functions, from those of the arguments, ``{dot_a}`` and ``{dot_b}``.
VECTOR_TANGENTS: dict[str, str] = {
    "dot": "dot({dot_a}, {b}) + dot({a}, {dot_b})",
    "length": "dot({x}, {dot_a}) / {y}",
    "length_squared": "2 * dot({x}, {dot_a})",
    "distance": "dot({a} - {b}, {dot_a} - {dot_b}) / {y}",
    "distance_squared": "2 * dot({a} - {b}, {dot_a} - {dot_b})",
    "normalize": "({dot_a} - {y} * dot({y}, {dot_a})) / length({x})",
    "cross": "cross({dot_a}, {b}) + cross({a}, {dot_b})",
    "reflect": "{dot_a} - 2 * ((dot({dot_a}, {b}) + dot({a}, {dot_b})) * {b} + "
    "dot({a}, {b}) * {dot_b})",
    "faceforward": "{dot_a} * (dot({c}, {b}) < 0 ? 1 : -1)",
    MATRIX_PRODUCT: "simd_matrix_product({dot_a}, {b}) + simd_matrix_product({a}, {dot_b})",
}

#: Functions whose results do not change with small changes of their arguments.
CONSTANT = frozenset(
    ("floor", "ceil", "round", "rint", "trunc", "sign", "step", "isnan", "isinf", "isfinite",
     "signbit", "ilogb", "all", "any", *CONSTANT_LANE_FUNCTIONS)
)  # fmt: skip

#: Functions that derivatives may call: variables have other names.
FUNCTIONS = frozenset(
    (*PARTIALS, *VECTOR_PRODUCTS, *CONSTANT, "select", "adjoint_add", "simd_matrix_transpose")
)
