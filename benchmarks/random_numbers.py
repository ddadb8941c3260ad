"""Random numbers against NumPy, MLX and torch, in one run: ``python benchmarks/random_numbers.py``.

MLX and torch are left out where they are not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
from timing import alternating, show, table

import metalloid as mtl

COUNT = 2**24


def metalloid_draws() -> dict[str, Callable[[], object]]:
    key = mtl.random.key(0)
    return {
        "uniform": lambda: mtl.eval(mtl.random.uniform(shape=COUNT, key=key)),
        "normal": lambda: mtl.eval(mtl.random.normal(COUNT, key=key)),
        "uniform, summed": lambda: mtl.eval(mtl.random.uniform(shape=COUNT, key=key).sum()),
        "normal, summed": lambda: mtl.eval(mtl.random.normal(COUNT, key=key).sum()),
    }


def numpy_draws(bit_generator: type) -> dict[str, Callable[[], object]]:
    rng = np.random.Generator(bit_generator(0))
    out = np.empty(COUNT, np.float32)  # written before it is timed, and again and again
    return {
        "uniform": lambda: rng.random(out=out, dtype=np.float32),
        "normal": lambda: rng.standard_normal(out=out, dtype=np.float32),
        "uniform, summed": lambda: rng.random(out=out, dtype=np.float32).sum(),
        "normal, summed": lambda: rng.standard_normal(out=out, dtype=np.float32).sum(),
    }


def mlx_draws() -> dict[str, Callable[[], object]]:
    mx = importlib.import_module("mlx.core")
    mx.set_default_device(mx.cpu)
    key = mx.random.key(0)
    return {
        "uniform": lambda: mx.eval(mx.random.uniform(shape=(COUNT,), key=key)),
        "normal": lambda: mx.eval(mx.random.normal((COUNT,), key=key)),
        "uniform, summed": lambda: mx.eval(mx.random.uniform(shape=(COUNT,), key=key).sum()),
        "normal, summed": lambda: mx.eval(mx.random.normal((COUNT,), key=key).sum()),
    }


def torch_draws() -> dict[str, Callable[[], object]]:
    torch = importlib.import_module("torch")
    out = torch.empty(COUNT)
    return {
        "uniform": out.uniform_,
        "normal": out.normal_,
        "uniform, summed": lambda: out.uniform_().sum(),
        "normal, summed": lambda: out.normal_().sum(),
    }


def main() -> None:
    libraries = {"metalloid": metalloid_draws()}
    for bit_generator in (np.random.SFC64, np.random.PCG64):
        libraries[f"NumPy {bit_generator.__name__}"] = numpy_draws(bit_generator)
    for name, draws in (("MLX CPU", mlx_draws), ("torch CPU", torch_draws)):
        try:
            libraries[name] = draws()
        except ImportError as error:
            print(f"{name} is left out: {error}")
    rows = []
    for draw in libraries["metalloid"]:
        actions = [draws[draw] for draws in libraries.values()]
        seconds = alternating(actions, repeat=7)
        for name, s in zip(libraries, seconds, strict=True):
            rate = f"{COUNT / s / 1e9:.2f}"
            rows.append((draw, name, show(s), rate, f"{s / seconds[0]:.2f}"))
    head = ("numbers", "library", "time", "billions a second", "x metalloid")
    table(f"{COUNT:,} random float32", head, rows)


if __name__ == "__main__":
    main()
