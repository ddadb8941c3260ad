"""Functions of one and of two tensors, element by element, and gated units."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, roundoff
from scipy import special

from ggml_tree.source import extents, run

_UNARY = re.compile(r"kernel_unary_(f32|f16)_\1(_4)?$")
_BINARY = re.compile(r"kernel_bin_fuse_(f32|f16)_\1_\1(_4)?$")
_GATED = re.compile(r"kernel_(reglu|geglu|geglu_erf|geglu_quick|swiglu|swiglu_oai)_(f32|f16)$")
_SNAKE = re.compile(r"kernel_snake_(f32|f16|bf16)$")

_DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

_U = roundoff(FLOAT)
_SLOPE, _SCALE, _BIAS, _VALUE, _LIMIT = (float(np.float32(x)) for x in (0.1, 0.7, -0.3, -1e-6, 1.5))
#: Largest error of ggml's polynomial for erf (Abramowitz and Stegun 7.1.26), in units of _U.
_ERF_ERROR = 1.5e-7 / _U


@dataclass(frozen=True)
class _Function:
    """A function in float64, and how its error grows, in units of float32's rounding.

    Attributes
    ----------
    relative : float
        With the result.
    with_argument, absolute : float
        With the argument, and always: where terms cancel.
    """

    exact: object
    relative: float = 8
    with_argument: float = 0
    absolute: float = 0


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)))


def _gelu_erf(x):
    return x * special.ndtr(x)


def _gelu_sigmoid(x):
    return x * special.expit(1.702 * x)


def _silu(x):
    return x * special.expit(x)


def _xielu(x):
    negative = (np.exp(np.minimum(x, _VALUE)) - 1 - x) * _SLOPE + _BIAS * x
    return np.where(x > 0, _SCALE * x * x + _BIAS * x, negative)


def _round(x):
    return np.trunc(x + np.copysign(0.5, x))


#: By the number that ggml gives each: OP_UNARY_NUM_<name>.
UNARY = {
    "SCALE": _Function(lambda x: _SCALE * x + _BIAS, 2, 2),
    "FILL": _Function(lambda x: np.full_like(x, _VALUE), 1),
    "CLAMP": _Function(lambda x: np.clip(x, -_LIMIT, _LIMIT), 0),
    "SQR": _Function(np.square, 1),
    "SQRT": _Function(lambda x: np.sqrt(np.where(x < 0, np.nan, x)), 1),
    "SIN": _Function(np.sin, 4, 0, 2),
    "COS": _Function(np.cos, 4, 0, 2),
    "LOG": _Function(lambda x: np.log(np.where(x < 0, np.nan, x)), 4, 0, 2),
    "LEAKY_RELU": _Function(lambda x: np.where(x > 0, x, _SLOPE * x), 1),
    "TANH": _Function(np.tanh),
    "RELU": _Function(lambda x: np.maximum(x, 0), 0),
    "SIGMOID": _Function(special.expit),
    "GELU": _Function(_gelu, 8, 8),
    "GELU_ERF": _Function(_gelu_erf, 8, 4 + _ERF_ERROR),
    "GELU_QUICK": _Function(_gelu_sigmoid, 24),
    "SILU": _Function(_silu, 24),
    "ELU": _Function(lambda x: np.where(x > 0, x, np.expm1(x)), 4, 0, 4),
    "NEG": _Function(np.negative, 0),
    "ABS": _Function(np.abs, 0),
    "SGN": _Function(np.sign, 0),
    "STEP": _Function(lambda x: (x > 0).astype(np.float64), 0),
    "HARDSWISH": _Function(lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 8, 4),
    "HARDSIGMOID": _Function(lambda x: np.clip(x / 6 + 0.5, 0, 1), 4, 0, 4),
    "EXP": _Function(np.exp),
    "SOFTPLUS": _Function(lambda x: np.logaddexp(0, x), 8, 0, 8),
    "EXPM1": _Function(np.expm1, 8, 0, 8),
    "FLOOR": _Function(np.floor, 0),
    "CEIL": _Function(np.ceil, 0),
    "ROUND": _Function(_round, 0),
    "TRUNC": _Function(np.trunc, 0),
    "XIELU": _Function(_xielu, 8, 8, 8),
}


def _rounding(exact, dtype):
    """Error of a result in float32 that is stored in `dtype`."""
    if dtype == np.float32:
        return 0
    return roundoff(dtype) * np.abs(exact) * 1.001 + 2.0**-25


def check_unary(source, library, name, rng):
    type_, wide = _UNARY.match(name).groups()
    dtype = _DTYPES[type_]
    values = {"slope": _SLOPE, "scale": _SCALE, "bias": _BIAS, "val": _VALUE}
    x = (rng.normal(size=(2, 3, 5, 132)) * 3).astype(dtype)
    sizes = extents(x, "0") | extents(x)
    width = 132 // 4 if wide else 132
    sizes |= {"ne00": width, "ne0": width}
    arguments = source.arguments("unary", **sizes, **values, min=-_LIMIT, max=_LIMIT)
    for index, (operation, function) in enumerate(UNARY.items()):
        contiguous = index % 2 == 0  # one thread for each group, or rows
        constants = {
            "FC_unary_op": source.numbers[f"OP_UNARY_NUM_{operation}"], "FC_unary_cnt": contiguous,
        }  # fmt: skip
        out = np.full_like(x, np.nan)
        groups, threads = ((width * 30, 1, 1), 1) if contiguous else ((2 * 5, 3, 2), 100)
        run(library.function(name, constants), (arguments, x, out), groups, (threads,))
        wide_x = x.astype(np.float64)
        exact = function.exact(wide_x)
        error = function.relative * np.abs(exact) + function.with_argument * np.abs(wide_x)
        error = _U * (error + function.absolute)
        error = error + _rounding(exact, dtype)
        try:
            good = ~np.isnan(exact)
            assert np.all(np.isnan(out[~good]))
            assert_within(out[good], exact[good], error[good])
        except AssertionError as failure:
            raise AssertionError(f"{operation}: {failure}") from failure


def check_binary(source, library, name, rng):
    """``x op y``, or ``x + y[0] + y[1] + ...`` in one kernel, with rows and columns repeated."""
    type_, wide = _BINARY.match(name).groups()
    dtype = _DTYPES[type_]
    operations = (np.add, np.subtract, np.multiply, np.divide)
    cases = [(op, 1, by_rows, False) for op in range(4) for by_rows in (False, True)]
    cases += [(0, 3, False, False), (0, 3, True, False), (2, 2, False, False)]
    cases += [] if wide else [(0, 1, False, True), (1, 1, True, True)]
    for operation, terms, by_rows, repeats in cases:
        columns = 132
        x = rng.normal(size=(2, 3, 4, columns)).astype(dtype)
        shape = (1, 1, 1) if by_rows else (1, 3, 2)
        y = rng.uniform(1, 2, (terms, *shape, 33 if repeats else columns)).astype(dtype)
        out = np.full_like(x, np.nan)
        sizes = extents(x, "0") | extents(y[0], "1") | extents(out)
        if wide:
            sizes |= dict.fromkeys(("ne00", "ne10", "ne0"), columns // 4)
        starts = [j * y[0].nbytes for j in range(terms)] + [0] * (8 - terms)
        kernel = library.function(
            name,
            {"FC_bin_op": operation, "FC_bin_f": terms, "FC_bin_rb": by_rows, "FC_bin_cb": repeats},
        )
        arguments = source.arguments("bin", **sizes, offs=0, o1=starts)
        groups = (sizes["ne0"], 24, 1) if by_rows else (4, 3, 2)
        run(kernel, (arguments, x, y, out), groups, (1 if by_rows else 64,))
        expected = x
        for j in range(terms):
            repeat = (2, 3, 4) if by_rows else (2, 1, 2)
            term = np.tile(y[j], (*repeat, 4 if repeats else 1))
            expected = operations[operation](expected, term)
        np.testing.assert_array_equal(out, expected)


GATES = {
    "reglu": _Function(lambda x: np.maximum(x, 0), 1),
    "geglu": UNARY["GELU"],
    "geglu_erf": UNARY["GELU_ERF"],
    "geglu_quick": UNARY["GELU_QUICK"],
    "swiglu": UNARY["SILU"],
}


def check_gated(source, library, name, rng):
    """``f(x) y``, where x and y are two tensors or the halves of one."""
    kind, type_ = _GATED.match(name).groups()
    dtype = _DTYPES[type_]
    kernel = library.function(name)
    alpha, limit = float(np.float32(1.702)), 1.5
    for halves, swapped in ((False, False), (True, False), (True, True)):
        both = (rng.normal(size=(7, 2, 66)) * 2).astype(dtype)
        x, y = both[:, int(swapped)], both[:, 1 - int(swapped)]
        first, second = (both, both) if halves else map(np.ascontiguousarray, (x, y))
        out = np.full((7, 66), np.nan, dtype)
        stride = both.strides[0] if halves else out.strides[0]
        arguments = source.arguments(
            "glu", ne00=132 if halves else 66, nb01=stride, ne10=132 if halves else 66, nb11=stride,
            ne0=66, nb1=out.strides[0], i00=66 * (halves and swapped),
            i10=66 * (halves and not swapped), alpha=alpha, limit=limit,
        )  # fmt: skip
        run(kernel, (arguments, first, second, out), (7,), (33,))
        x, y = x.astype(np.float64), y.astype(np.float64)
        if kind == "swiglu_oai":
            x, y = np.minimum(x, limit), np.clip(y, -limit, limit)
            exact = x * special.expit(alpha * x) * (1 + y)
            error = 24 * np.abs(exact) + 4 * np.abs(x)
        else:
            function = GATES[kind]
            gate = function.exact(x)
            exact = gate * y
            error = (function.relative + 2) * np.abs(exact)
            error = error + (function.with_argument * np.abs(x) + function.absolute) * np.abs(y)
        assert_within(out, exact, _U * error + _rounding(exact, dtype))


def check_snake(source, library, name, rng):
    """``x + sin(a x)^2 / b`` with an a and a b for each channel."""
    dtype, channels, steps = _DTYPES[_SNAKE.match(name)[1]], 7, 45
    x = rng.normal(size=(channels, steps)).astype(dtype)
    a, inverse = rng.uniform(0.5, 2, (2, channels)).astype(np.float32)
    out = np.full_like(x, np.nan)
    arguments = source.arguments("snake", T=steps, C=channels)
    run(library.function(name), (arguments, x, a, inverse, out), (5,), (64,))
    wide, a, inverse = x.astype(np.float64), a[:, None], inverse[:, None]
    exact = wide + np.sin(a * wide) ** 2 * inverse
    error = 8 * _U * (np.abs(wide) + inverse * (1 + np.abs(a * wide)))
    assert_within(out, exact, error + _rounding(exact, dtype))


FAMILIES = (
    ("function of one tensor", check_unary, _UNARY),
    ("function of two tensors", check_binary, _BINARY),
    ("gated unit", check_gated, _GATED),
    ("snake", check_snake, _SNAKE),
)
