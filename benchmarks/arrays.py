"""Arrays against NumPy, MLX, JAX, torch, numexpr and Numba: the same work, in turns, in one run.

    pip install '.[bench]' mlx torch numexpr
    python benchmarks/arrays.py [--only fused softmax ...] [--repeats 7]

Each number is the median of runs, in milliseconds. Peers take turns: a pause, in which the threads
of the one before stop waiting for work (OpenMP's do so busily); runs that are not counted, until
the processor is as fast as it gets; and some that are. A peer that is not installed has no column.
Results are compared with NumPy's in float64 before anything is timed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import installed

import metalloid as mtl
from metalloid.bench.measure import medians

Run = Callable[[], Any]
#: Seconds of rest, and of runs that do not count, before each turn.
_PAUSE, _WARM = 0.3, 0.15


class Peer:
    """A library with NumPy's functions: how to hand over an array, and how to wait for a result."""

    def __init__(self, name: str, xp: Any, give: Run, wait: Run, jit: Run) -> None:
        self.name, self.xp, self.give, self.wait, self.jit = name, xp, give, wait, jit


def peers() -> Iterator[Peer]:
    """Yield the peers that are installed."""
    same = lambda f: f  # noqa: E731
    yield Peer("metalloid", mtl, mtl.asarray, lambda y: (mtl.eval(y), y)[1], same)
    yield Peer("numpy", np, np.asarray, same, same)
    if mx := installed("mlx.core"):
        mx.set_default_device(mx.cpu)
        yield Peer("mlx", mx, mx.array, lambda y: (mx.eval(y), y)[1], mx.compile)
    if jax := installed("jax"):
        import jax.numpy as jnp

        yield Peer("jax", jnp, jnp.asarray, lambda y: y.block_until_ready(), jax.jit)
    if torch := installed("torch"):
        yield Peer("torch", torch, torch.from_numpy, same, same)


# -- the work: a function of a peer's namespace and its arrays


def fused(xp: Any, x: Any, y: Any) -> Any:
    return xp.exp(-x * x) * xp.sin(y) + xp.sqrt(x) / (1 + y * y)


def softmax(xp: Any, x: Any) -> Any:
    if xp.__name__ == "torch":
        return xp.softmax(x, 1)
    if xp.__name__ == "mlx.core":
        return xp.softmax(x, axis=1)
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def layer_norm(xp: Any, x: Any) -> Any:
    if xp.__name__ == "torch":
        return xp.nn.functional.layer_norm(x, x.shape[1:])
    if xp.__name__ == "mlx.core":
        return xp.fast.layer_norm(x, None, None, 1e-5)
    mean = xp.mean(x, axis=1, keepdims=True)
    return (x - mean) / xp.sqrt(xp.var(x, axis=1, keepdims=True) + 1e-5)


def chain(xp: Any, x: Any, y: Any) -> Any:
    for _ in range(10):
        x = x * y + 0.5
    return x


def _uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def works() -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Name, function and arrays of each row."""
    long, rows = _uniform(2**23), _uniform(4096, 1024)
    return {
        "fused": (fused, (long, _uniform(2**23))),
        "20 on 1000": (chain, (_uniform(1000), _uniform(1000))),
        "sum": (lambda xp, x: xp.sum(x), (long,)),
        "mean": (lambda xp, x: xp.mean(x), (long,)),
        "max": (lambda xp, x: xp.max(x), (long,)),
        "argmax": (lambda xp, x: xp.argmax(x), (long,)),
        "sum of rows": (lambda xp, x: xp.sum(x, axis=1), (rows,)),
        "sum of columns": (lambda xp, x: xp.sum(x, axis=0), (rows,)),
        "softmax": (softmax, (rows,)),
        "layer norm": (layer_norm, (rows,)),
        "matmul 1024": (lambda xp, x, y: xp.matmul(x, y), (_uniform(1024, 1024),) * 2),
        "sort": (lambda xp, x: xp.sort(x), (long,)),
    }


def runs_of(function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> dict[str, Run]:
    """By peer: what is timed. Results that differ end the run."""
    exact = np.asarray(function(np, *(a.astype(np.float64) for a in arrays)))
    timed: dict[str, Run] = {}
    for peer in peers():
        compiled = peer.jit(lambda *args, peer=peer: function(peer.xp, *args))
        own = [peer.give(a) for a in arrays]

        def run(compiled: Run = compiled, own: list[Any] = own, peer: Peer = peer) -> Any:
            return peer.wait(compiled(*own))

        result = run()
        if isinstance(result, tuple) or type(result).__name__ == "sort":
            result = result[0]
        near_zero = 4e-6 * np.abs(exact).max()  # where terms cancel
        np.testing.assert_allclose(
            np.asarray(result, np.float64), exact, 2e-4, near_zero, err_msg=peer.name
        )
        timed[peer.name] = run
    if function is fused and (numexpr := installed("numexpr")):
        x, y = arrays
        text = "exp(-x * x) * sin(y) + sqrt(x) / (1 + y * y)"
        timed["numexpr"] = lambda: numexpr.evaluate(text, {"x": x, "y": y})
    if function is fused and (numba := installed("numba")):
        timed["numba"] = _numba(numba, *arrays)
    return timed


def _numba(numba: Any, x: np.ndarray, y: np.ndarray) -> Run:
    @numba.njit(parallel=True, fastmath=True)
    def compute(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = np.exp(-x[i] * x[i]) * np.sin(y[i]) + np.sqrt(x[i]) / (1 + y[i] * y[i])
        return out

    compute(x, y)
    return lambda: compute(x, y)


def measured(runs: dict[str, Run], repeats: int) -> dict[str, float]:
    """Median milliseconds of each, taking turns."""
    seconds = medians(list(runs.values()), repeats, pause=_PAUSE, warm=_WARM)
    return {name: value * 1e3 for name, value in zip(runs, seconds, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="rows, as the table calls them")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    names = [*dict.fromkeys(["metalloid", *(peer.name for peer in peers()), "numexpr", "numba"])]
    print(f"{os.cpu_count()} processors; milliseconds")
    print(f"{'':16}" + "".join(f"{name:>11}" for name in names) + "  best peer / metalloid")
    for name, (function, arrays) in works().items():
        if options.only and name not in options.only:
            continue
        times = measured(runs_of(function, arrays), options.repeats)
        best = min(value for peer, value in times.items() if peer != "metalloid")
        cells = "".join(f"{times[n]:11.3f}" if n in times else f"{'':11}" for n in names)
        print(f"{name:16}{cells}{best / times['metalloid']:9.2f}")


if __name__ == "__main__":
    main()
