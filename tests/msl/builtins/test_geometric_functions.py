"""Geometric functions on vectors of 2, 3 and 4 in float, half and bfloat.

All compute in float; the bounds are the classical ones of a sum of products, (roundings) u times
the sum of the magnitudes, and one rounding to the type of the result.
"""

import numpy as np
import pytest
from float_operands import numbers
from judges import roundoff, smallest
from msl_types import FLOATS, vector
from sheets import Row, Sheet

U = roundoff(np.dtype(np.float32))


def d(x):
    return x.astype(np.float64)


def dot(a, b):
    return np.sum(d(a) * d(b), axis=-1)


def magnitude(a, b):
    """Sum of the magnitudes of the terms of a dot product."""
    return np.sum(np.abs(d(a) * d(b)), axis=-1)


def norm(a):
    return np.sqrt(dot(a, a))


def each(x):
    """A number per vector, to be used with each of its components."""
    return np.asarray(x)[..., None]


def allow(exact, in_float, dtype):
    """The error of the computation in float, and half a unit of the result; underflow included."""
    return in_float + np.abs(exact) * roundoff(dtype) * (1 + 2 * U) + smallest(dtype)


def reflected(a, b):
    return d(a) - 2 * each(dot(b, a)) * d(b)


def reflect_error(a, b):
    """dot has 4 roundings, 2 dot n and the difference one each."""
    terms = np.abs(d(a)) + 2 * each(magnitude(a, b)) * np.abs(d(b))
    return allow(reflected(a, b), 8 * U * terms, a.dtype)


def refracted(a, b, r):
    cosine, r = each(dot(a, b)), each(d(r))
    k = 1 - r * r * (1 - cosine * cosine)
    through = r * d(a) - (r * cosine + np.sqrt(np.maximum(k, 0))) * d(b)
    return np.where(k < 0, 0.0, through)


def refract_error(a, b, r):
    """The error of k, 20 U or less for unit vectors and ratios up to 1.5, grows in the square root."""
    cosine, r = each(dot(a, b)), each(d(r))
    root = np.sqrt(np.maximum(1 - r * r * (1 - cosine * cosine), 1e-3))
    return allow(refracted(a, b, r[..., 0]), 40 * U / root, a.dtype)


def cross(a, b):
    return np.cross(d(a), d(b))


def cross_error(a, b):
    a_, b_ = np.abs(d(a)), np.abs(d(b))
    terms = a_[:, [1, 2, 0]] * b_[:, [2, 0, 1]] + a_[:, [2, 0, 1]] * b_[:, [1, 2, 0]]
    return allow(cross(a, b), 3 * U * terms, a.dtype)


def normalized(a):
    return d(a) / each(norm(a))


def rows_of(type_, lanes):
    T = vector(type_, lanes)

    def sum_bound(exact, terms, roundings):
        """`exact` and `terms` are functions of the operands."""

        def error(a, b):
            return allow(exact(a, b), roundings * U * terms(a, b), a.dtype)

        return error

    rows = [
        Row(type_, "dot(a, b)", dot, sum_bound(dot, magnitude, lanes)),
        Row(type_, "length_squared(a)", lambda a: dot(a, a), lambda a: allow(dot(a, a), lanes * U * dot(a, a), a.dtype)),
        Row(type_, "length(a)", norm, lambda a: allow(norm(a), lanes * U * norm(a), a.dtype)),
        Row(type_, "distance(a, b)", lambda a, b: norm(d(a) - d(b)),
            sum_bound(lambda a, b: norm(d(a) - d(b)), lambda a, b: norm(d(a) - d(b)), lanes + 2)),
        Row(type_, "distance_squared(a, b)", lambda a, b: norm(d(a) - d(b)) ** 2,
            sum_bound(lambda a, b: norm(d(a) - d(b)) ** 2, lambda a, b: norm(d(a) - d(b)) ** 2, lanes + 4)),
        Row(T, "normalize(a)", normalized, lambda a: allow(normalized(a), (lanes + 3) * U * np.abs(normalized(a)), a.dtype)),
        Row(T, "reflect(a, b)", reflected, reflect_error),
        Row(T, "refract(u, v, r)", lambda u, v, r: refracted(u, v, r), lambda u, v, r: refract_error(u, v, r)),
        # The sign of zero, and of what rounds to it, is open: those vectors are left out of `s`.
        Row(T, "faceforward(a, b, s)", lambda a, b, s: np.where(each(dot(s, b) < 0), d(a), -d(a))),
        Row(type_, f"dot(packed_{T}(a), b) + 0", dot, sum_bound(dot, magnitude, lanes)),
        Row(type_, f"length(packed_{T}(a))", norm, lambda a: allow(norm(a), lanes * U * norm(a), a.dtype)),
        Row(type_, "fast::dot(a, b)", dot, sum_bound(dot, magnitude, lanes)),
        Row(T, "precise::normalize(a)", normalized, lambda a: allow(normalized(a), (lanes + 3) * U * np.abs(normalized(a)), a.dtype)),
    ]  # fmt: skip
    if lanes == 3:
        rows.append(Row(T, "cross(a, b)", cross, cross_error))
    return rows


def sheet_of(type_, lanes):
    T = vector(type_, lanes)

    def data(rng):
        columns = numbers(3 * lanes, type_, rng)
        a, b, s = (np.stack(columns[j::3], axis=-1) for j in range(3))
        u, v = (normalized(x).astype(x.dtype) for x in (a, b))
        r = rng.uniform(0.5, 1.5, len(a)).astype(a.dtype)
        clear = np.abs(dot(s, b)) > 0.05 * magnitude(s, b)
        away = np.abs(1 - d(r) ** 2 * (1 - dot(u, v) ** 2)) > 0.02  # total reflection is a jump
        mask = clear & away
        return {"a": a[mask], "b": b[mask], "s": s[mask], "u": u[mask], "v": v[mask], "r": r[mask]}

    inputs = dict.fromkeys("absuv", T) | {"r": type_}
    return Sheet(T, inputs, data, rows_of(type_, lanes))


@pytest.mark.parametrize("sheet", [sheet_of(t, n) for t in FLOATS for n in (2, 3, 4)], ids=str)
@pytest.mark.sample(3)
def test_geometric_functions(sheet, kernel):
    sheet.check(kernel)
