"""Random kernels with indices that may be wild, and which of their accesses are outside."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Environment = dict[str, int]
_MASK = 0xFFFFFFFF
#: Elements of y and x, and what is before and after them.
ELEMENTS, MARGIN = 96, 64


class Expression(NamedTuple):
    """Text of an unsigned number, and its value."""

    text: str
    value: Callable[[Environment], int]


def _constant(rng: random.Random, below: int) -> Expression:
    number = rng.randrange(below)
    return Expression(f"{number}u", lambda env: number)


def expression(rng: random.Random, depth: int, names: tuple[str, ...]) -> Expression:
    """A random expression of these variables."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.25:
            return _constant(rng, 40)
        name = rng.choice(names)
        return Expression(name, lambda env: env[name])
    left = expression(rng, depth - 1, names)
    right = expression(rng, depth - 1, names)
    small = rng.randrange(1, 20)
    bits = rng.randrange(1, 6)
    op = rng.choice(["+", "+", "+", "-", "*", "/", "%", "&", ">>", "<<", "min", "max", "?"])
    match op:
        case "+":
            return Expression(f"({left.text} + {right.text})",
                              lambda e: (left.value(e) + right.value(e)) & _MASK)  # fmt: skip
        case "-":
            return Expression(f"({left.text} - {right.text})",
                              lambda e: (left.value(e) - right.value(e)) & _MASK)  # fmt: skip
        case "*":
            return Expression(f"({left.text} * {small}u)",
                              lambda e: left.value(e) * small & _MASK)  # fmt: skip
        case "/":
            return Expression(f"({left.text} / {small}u)", lambda e: left.value(e) // small)
        case "%":
            return Expression(f"({left.text} % {small}u)", lambda e: left.value(e) % small)
        case "&":
            mask = rng.choice((1, 3, 7, 31, 63, 0xFFFFFFE0, 0xFFFFFFF8, 5))
            return Expression(f"({left.text} & {mask}u)", lambda e: left.value(e) & mask)
        case ">>":
            return Expression(f"({left.text} >> {bits}u)", lambda e: left.value(e) >> bits)
        case "<<":
            return Expression(f"({left.text} << {bits}u)",
                              lambda e: left.value(e) << bits & _MASK)  # fmt: skip
        case "min" | "max":
            of = {"min": min, "max": max}[op]
            return Expression(f"{op}({left.text}, {right.text})",
                              lambda e: of(left.value(e), right.value(e)))  # fmt: skip
    return Expression(
        f"({left.text} < {right.text} ? {left.text} : {right.text})",
        lambda e: min(left.value(e), right.value(e)),
    )


class RandomKernel(NamedTuple):
    """A kernel, its launch, and the accesses of its threads.

    Attributes
    ----------
    text : str
    threads, group : int
    n : int
    data : ndarray
        Numbers of which indices are made.
    accesses : callable
        The elements of y and x that a thread accesses, by its position: ``("y", index)``.
    """

    text: str
    threads: int
    group: int
    n: int
    data: np.ndarray
    accesses: Callable[[int], list[tuple[str, int]]]


def random_kernel(seed: int, launch: int = 0) -> RandomKernel:
    """The kernel of a seed, and one of its launches."""
    rng = random.Random(f"{seed} {launch}")
    threads, group = rng.choice((1, 5, 32, 64, 96, 97, 130)), rng.choice((8, 32, 64))
    n = rng.choice((0, 1, 7, 32, 95, 96, 97))
    data = np.array([rng.randrange(ELEMENTS) for _ in range(threads)], np.uint32)
    if rng.random() < 0.2:
        data[rng.randrange(threads)] = rng.choice((ELEMENTS, 2**31, 2**32 - 1))
    rng = random.Random(seed)
    outer = ("i", "i", "l", "g", "n") + ("d",) * (rng.random() < 0.4)
    first, last = expression(rng, 1, outer), expression(rng, 1, outer)
    step, guard = rng.choice((1, 1, 2, 7)), expression(rng, 1, outer)
    limit = rng.choice((expression(rng, 0, ("n",)), _constant(rng, 100)))
    loop = rng.choice(("none", "up", "up", "down", "pointer"))
    inner = (*outer, "j", "j") if loop != "none" else outer
    stored, loaded = expression(rng, 2, inner), expression(rng, 2, inner)
    cast = rng.choice(("", "int"))
    body = f"y[{cast}({stored.text})] = 1; sum += x[{cast}({loaded.text})];"
    # Loops are short.
    bounds = f"uint a = ({first.text}) & 31u, b = ({last.text}) & 63u;"
    stride = expression(rng, 1, outer)
    if loop == "pointer":
        body = (
            f"{bounds} device const int *q = x; for (uint j = a; j < b; j += {step}u) "
            f"{{ y[{cast}({stored.text})] = 1; sum += *q; q += ({stride.text}) & 7u; }}"
        )
    elif loop == "up":
        body = f"{bounds} for (uint j = a; j < b; j += {step}u) {{ {body} }}"
    elif loop == "down":
        body = f"{bounds} for (int k = int(b); k > int(a); k -= {step}) {{ uint j = k; {body} }}"
    if rng.random() < 0.6:
        body = f"if ({guard.text} < {limit.text}) {{ {body} }}"
    else:
        limit = Expression("", lambda env: 2**32)
    text = f"""#include <metal_stdlib>
using namespace metal;
kernel void f(device int *y, device const int *x, device const uint *data, device int *sums,
              constant uint &n, uint i [[thread_position_in_grid]],
              uint l [[thread_position_in_threadgroup]],
              uint g [[threadgroup_position_in_grid]]) {{
  int sum = 0;
  uint d = data[i];
  {body}
  sums[i] = sum + int(d);
}}
"""

    def indices(environment: Environment) -> list[tuple[str, int]]:
        def index(each: Expression) -> int:
            number = each.value(environment)
            return number - 2**32 if cast and number >= 2**31 else number

        return [("y", index(stored)), ("x", index(loaded))]

    def accesses(i: int) -> list[tuple[str, int]]:
        own = {"i": i, "l": i % group, "g": i // group, "n": n, "d": int(data[i])}
        if not guard.value(own) < limit.value(own):
            return []
        if loop == "none":
            return indices(own)
        a, b = first.value(own) & 31, last.value(own) & 63
        if loop == "pointer":
            moved = stride.value(own) & 7
            return [
                access for k, j in enumerate(range(a, b, step))
                for access in (indices({**own, "j": j})[0], ("x", k * moved))
            ]  # fmt: skip
        counter = range(a, b, step) if loop == "up" else range(b, a, -step)
        return [access for j in counter for access in indices({**own, "j": j})]

    return RandomKernel(text, threads, group, n, data, accesses)
