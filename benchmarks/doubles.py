"""Float64 functions against NumPy, on one thread: ``python benchmarks/doubles.py [names]``.

Names are those of `metalloid.arrays.ir.ops.OPS`; without any, all that take longer than a division.
SciPy, for what NumPy has not, is left out where it is not installed.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from timing import alternating, table

import metalloid as mtl
from metalloid.arrays.ir.ops import OPS, Op

COUNT = 2**18
#: Where operands come from, if it is not from -4 to 4.
RANGES = {
    "log": (0, 100), "log2": (0, 100), "log10": (0, 100), "log1p": (-1, 100), "asin": (-1, 1),
    "acos": (-1, 1), "atanh": (-1, 1), "erfinv": (-1, 1), "acosh": (1, 100), "pow": (0, 10),
}  # fmt: skip


def operands(op: Op, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shape = op.operands, COUNT
    parts = rng.uniform(*RANGES.get(op.name, (-4, 4)), size=shape)
    return list(parts if dtype is np.float64 else parts + 1j * rng.uniform(-4, 4, shape))


def rival(op: Op) -> Callable[..., object] | None:
    name = op.reference or op.name
    path = name if "." in name else f"numpy.{name}"
    try:
        function: Callable[..., object] = pkgutil.resolve_name(path)
    except ImportError:
        return None
    return function


def evaluate(function: Callable[..., mtl.Array], arrays: Sequence[mtl.Array]) -> None:
    mtl.eval(function(*arrays))


def measure(names: Sequence[str], dtype: type) -> None:
    rows = []
    for name in names:
        theirs, args = rival(OPS[name]), operands(OPS[name], dtype)
        arrays = [mtl.asarray(arg) for arg in args]
        actions: list[Callable[[], object]] = [partial(evaluate, getattr(mtl, name), arrays)]
        if theirs is not None:
            actions.append(partial(theirs, *args, out=np.empty_like(args[0])))
        for action in actions:
            action()  # compiled, and its pages written
        each = [seconds / COUNT * 1e9 for seconds in alternating(actions)]
        ratio = f"{each[1] / each[0]:.1f}" if theirs is not None else ""
        rows.append((name, *(f"{ns:.2f}" for ns in each), ratio))
    head = ("function", "metalloid", "NumPy", "times as fast")
    table(f"{dtype.__name__}: nanoseconds each, of {COUNT:,} in the cache", head, rows)


def main() -> None:
    mtl.config.num_threads = 1
    asked = sys.argv[1:]
    for dtype, kind in ((np.float64, "f"), (np.complex128, "c")):
        slow = [name for name, op in OPS.items() if kind in op.dtype_kinds and op.cost > 4]
        measure([name for name in slow if not asked or name in asked], dtype)


if __name__ == "__main__":
    main()
