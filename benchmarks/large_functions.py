"""Functions of 2^26 floats on an NVIDIA GPU: time of calls in a queue until the last has ended.

    python benchmarks/large_functions.py

Ours are compiled. The peers are jax.jit, torch and CuPy as written, and torch.compile; all must be
installed. Times are those of a call, the best of five queues of ten.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cupy
import jax
import jax.numpy as jnp
import numpy as np
import torch
from timing import show, table
from workload_programs import PROGRAMS

import metalloid as mtl

Action = Callable[[], object]
Program = Callable[..., Any]


def wait(result: Any) -> None:
    torch.cuda.synchronize()


def in_a_row(call: Action, finish: Callable[[Any], object], count: int = 10) -> float:
    """Seconds per call, for several in a queue."""
    started = time.perf_counter()
    result = None
    for _ in range(count):
        result = call()
    finish(result)
    return (time.perf_counter() - started) / count


def main() -> None:
    rng, n = np.random.default_rng(0), 1 << 26
    prices = [rng.uniform(0.5, 1.5, n).astype(np.float32) for _ in range(3)]
    functions: dict[str, tuple[Program, int]] = {
        "Black-Scholes": (PROGRAMS["black scholes"][0], 3),
        "running sum": (lambda xp, x: (xp.cumulative_sum if xp is mtl else xp.cumsum)(
            x, **({"dim": 0} if xp is torch else {"axis": 0})), 1),
        "variance": (lambda xp, x: xp.var(x), 1),
        "exp(sin(x))": (lambda xp, x: xp.exp(xp.sin(x)), 1),
        "sort": (lambda xp, x: xp.sort(x)[0] if xp is torch else xp.sort(x), 1),
    }  # fmt: skip
    rows = []
    for name, (function, count) in functions.items():
        own = [mtl.asarray(value, device="cuda") for value in prices[:count]]
        in_torch = [torch.from_numpy(value).cuda() for value in prices[:count]]
        in_cupy = [cupy.asarray(value) for value in in_torch]
        in_jax = [jax.device_put(value) for value in prices[:count]]
        torch._dynamo.reset()
        compiled, fast, jitted = (
            mtl.compile(lambda *args, f=function: f(mtl, *args)),
            torch.compile(lambda *args, f=function: f(torch, *args)),
            jax.jit(lambda *args, f=function: f(jnp, *args)),
        )

        def own_call(compiled: Any = compiled, own: Any = own) -> object:
            mtl.async_eval(result := compiled(*own))
            return result

        device = mtl.default_device()
        calls: dict[str, tuple[Action, Callable[[Any], object]]] = {
            "metalloid": (own_call, lambda _, device=device: device.synchronize()),
            "jax": (lambda f=jitted, x=in_jax: f(*x), jax.block_until_ready),
            "torch": (lambda f=function, x=in_torch: f(torch, *x), wait),
            "torch.compile": (lambda f=fast, x=in_torch: f(*x), wait),
            "cupy": (lambda f=function, x=in_cupy: f(cupy, *x), wait),
        }
        seconds = {}
        for peer, (call, finish) in calls.items():
            finish(call())
            seconds[peer] = min(in_a_row(call, finish) for _ in range(5))
        least = min(value for key, value in seconds.items() if key != "metalloid")
        rows.append((name, *map(show, seconds.values()), f"{seconds['metalloid'] / least:.2f}"))
    table("2^26 floats", ("", *calls, "ratio"), rows)


if __name__ == "__main__":
    main()
