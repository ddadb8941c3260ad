"""Quantising a row of floats, in float32 as the formats' definitions say."""

from __future__ import annotations

import numpy as np

FLOAT, HALF = np.float32, np.float16


def _inverse(step: np.ndarray) -> np.ndarray:
    return np.divide(1, step, out=np.zeros_like(step), where=step != 0)


def _extreme(x: np.ndarray) -> np.ndarray:
    """The element of largest magnitude, with its sign; the first of several."""
    return np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1)


def _symmetric(bits: int):
    half = 2 ** (bits - 1)

    def expected(x, tables):
        step = _extreme(x) / FLOAT(-half)
        codes = np.minimum(2 * half - 1, np.trunc(x * _inverse(step) + FLOAT(half + 0.5)))
        return step.astype(HALF).astype(np.float64) * (codes - half)

    return expected


def _with_minimum(bits: int):
    max_code = 2**bits - 1

    def expected(x, tables):
        least = x.min(-1, keepdims=True)
        step = (x.max(-1, keepdims=True) - least) / FLOAT(max_code)
        codes = np.minimum(max_code, np.trunc((x - least) * _inverse(step) + FLOAT(0.5)))
        step, least = (a.astype(HALF).astype(np.float64) for a in (step, least))
        return step * codes + least

    return expected


def _q8_0(x, tables):
    step = np.abs(x).max(-1, keepdims=True) / FLOAT(127)
    scaled = (x * _inverse(step)).astype(np.float64)
    codes = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    return step.astype(HALF).astype(np.float64) * codes


def _q1_0(x, tables):
    total = np.zeros_like(x[..., :1])
    for j in range(x.shape[-1]):  # in this order: the sum decides the last bit of the mean
        total += np.abs(x[..., j : j + 1])
    mean = (total / FLOAT(x.shape[-1])).astype(HALF).astype(np.float64)
    return np.where(x >= 0, mean, -mean)


def _ternary(x, tables):
    step = np.abs(x).max(-1, keepdims=True)
    scaled = (x * _inverse(step)).astype(np.float64)
    codes = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    return step.astype(HALF).astype(np.float64) * codes


def _iq4_nl(x, tables):
    book = tables["kvalues_iq4nl"].astype(FLOAT)
    scaled = x * _inverse(_extreme(x) / book[0])
    values = book[np.abs(scaled[..., None] - book).argmin(-1)].astype(np.float64)
    weights = x.astype(np.float64) ** 2
    step = (weights * values * x).sum(-1, keepdims=True) / (weights * values**2).sum(
        -1, keepdims=True
    )
    return step * values


#: ``(blocks of x, tables) -> the values that the quantised blocks stand for``.
EXPECTED = {
    "q1_0": _q1_0, "q2_0": _ternary, "tq2_0": _ternary, "q4_0": _symmetric(4),
    "q4_1": _with_minimum(4), "q5_0": _symmetric(5), "q5_1": _with_minimum(5),
    "q8_0": _q8_0, "iq4_nl": _iq4_nl,
}  # fmt: skip

#: Relative errors, where not all formats are exact: iq4_nl fits its step to the elements.
TOLERANCE = {"iq4_nl": 2.0**-10}
