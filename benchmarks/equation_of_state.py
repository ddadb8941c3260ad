"""The equation of state of sea water, as NumPy code with another import, against JAX.

    git clone https://github.com/dionhaefner/pyhpc-benchmarks  # d438ef8
    pip install jax
    python benchmarks/equation_of_state.py --pyhpc pyhpc-benchmarks [--sizes 20 22]

The formula is the benchmark's own: its file for NumPy runs here with ``import metalloid as np``.
All run on one processor; the numbers are float64, or float32 with ``--single``. The formula
magnifies rounding errors (by 10^6), so results are held to twice NumPy's error in the same type.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before any library counts processors

import numpy as np  # noqa: E402
from timing import show, table  # noqa: E402

import metalloid as mtl  # noqa: E402
from metalloid.bench.measure import medians  # noqa: E402


def formula(file: Path, import_: str) -> Callable[..., Any]:
    """The function of one of the benchmark's files, with another import."""
    names: dict[str, Any] = {}
    exec(file.read_text().replace("import numpy as np", import_), names)
    return names["gsw_dHdT"]  # type: ignore[no-any-return]


def inputs(size: int, dtype: type) -> list[np.ndarray]:
    """Salinity, temperature and pressure on a grid of about `size` points, as the benchmark's."""
    edge = size ** (1 / 3)
    shape = (int(np.ceil(2 * edge)),) * 2 + (int(np.ceil(edge / 4)),)
    random = np.random.default_rng(17)
    ranges = ((1e-2, 10, shape), (-12, 20, shape), (0, 1000, (1, 1, shape[-1])))
    return [random.uniform(low, high, extent).astype(dtype) for low, high, extent in ranges]


def runs(folder: Path, arrays: list[np.ndarray], dtype: type) -> dict[str, Callable[[], Any]]:
    """Functions to time, by library."""
    file = folder / "benchmarks" / "equation_of_state" / "eos_numpy.py"
    plain, ours = formula(file, "import numpy as np"), formula(file, "import metalloid as np")
    own = [mtl.asarray(a) for a in arrays]
    timed = {"metalloid": lambda: mtl.eval(ours(*own)), "numpy": lambda: plain(*arrays)}
    results = {"metalloid": ours(*own)}
    try:
        import jax
    except ImportError:
        print("jax is not installed")
    else:
        jax.config.update("jax_enable_x64", dtype is np.float64)
        compiled = jax.jit(formula(file, "import jax.numpy as np"))
        theirs = [jax.numpy.asarray(a) for a in arrays]
        results["jax"] = compiled(*theirs)
        timed["jax"] = lambda: compiled(*theirs).block_until_ready()
    exact = plain(*(a.astype(np.longdouble) for a in arrays))
    usual = np.abs(plain(*arrays) - exact).max()
    for name, result in results.items():
        error = np.abs(np.asarray(result) - exact).max()
        assert error < 2 * usual, f"{name} is off by {error}, NumPy by {usual}"
    return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pyhpc", type=Path, required=True, help="the benchmarks' folder")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 21, 22], help="powers of two")
    parser.add_argument("--single", action="store_true", help="float32")
    options = parser.parse_args()
    dtype = np.float32 if options.single else np.float64
    rows = []
    for power in options.sizes:
        actions = runs(options.pyhpc, inputs(2**power, dtype), dtype)
        seconds = medians(list(actions.values()), repeat=7)
        times = dict(zip(actions, seconds, strict=True))
        best = min(value for name, value in times.items() if name != "metalloid")
        cells = map(show, times.values())
        rows.append([f"2^{power}", *cells, f"{best / times['metalloid']:.2f}"])
    head = ["elements", *actions, "best peer / metalloid"]
    table(f"one processor, {np.dtype(dtype)}", head, rows)


if __name__ == "__main__":
    main()
