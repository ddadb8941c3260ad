"""Programs of everyday use, against NumPy, JAX, torch and MLX: ``python benchmarks/workloads.py``.

The programs are in ``workload_programs.py``. The time is that of
the wall clock from the call until the result is read, in turns, best of several runs. Ours runs as
written (eager) and compiled; JAX by `jit`, MLX compiled, torch as written, where they are installed
and know all names. On an NVIDIA GPU (``--device cuda``): JAX, torch as written, CuPy, and with
``--inductor`` torch compiled; results are copied to the host. The last columns are the ratios of
our time to the best of the others.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from timing import alternating, installed, show, table
from workload_programs import PROGRAMS, Program

import metalloid as mtl

#: From a program and its inputs to the call of each package, by name.
Contenders = Callable[[Program, Sequence[np.ndarray]], dict[str, Callable[[], Any]]]
OURS = "compiled", "eager"


def read(result: Any) -> Any:
    """Wait for a result, and read it."""
    return [np.asarray(v) for v in (result if isinstance(result, tuple | list) else [result])]


def own_calls(function: Program, values: Sequence[np.ndarray],
              device: str | None) -> dict[str, Callable[[], Any]]:  # fmt: skip
    """Ours, compiled and as written."""
    arrays = [mtl.asarray(value, device=device) for value in values]
    mtl.eval(*arrays)
    compiled = mtl.compile(lambda *args: function(mtl, *args))
    return {
        "compiled": lambda: read(compiled(*arrays)),
        "eager": lambda: read(function(mtl, *arrays)),
    }


def jax_call(function: Program, values: Sequence[np.ndarray]) -> dict[str, Callable[[], Any]]:
    """JAX's, by `jit`, on the device that JAX takes by default."""
    jax = installed("jax")
    if jax is None:
        return {}
    jitted = jax.jit(lambda *args: function(jax.numpy, *args))
    arrays = [jax.numpy.asarray(value) for value in values]
    return {"jax": lambda: read(jitted(*arrays))}


def cpu_calls(function: Program, values: Sequence[np.ndarray]) -> dict[str, Callable[[], Any]]:
    """By name, the program of each package on the CPU with its arrays."""
    calls = own_calls(function, values, None)
    calls["numpy"] = lambda: read(function(np, *values))
    calls |= jax_call(function, values)
    torch = installed("torch")
    if torch is not None:
        tensors = [torch.from_numpy(value) for value in values]
        calls["torch"] = lambda: read(function(torch, *tensors))
    mx = installed("mlx.core")
    if mx is not None:
        theirs = [mx.array(value) for value in values]
        fast = mx.compile(lambda *args: function(mx, *args))
        calls["mlx"] = lambda: read(fast(*theirs))
    return calls


def cuda_calls(function: Program, values: Sequence[np.ndarray]) -> dict[str, Callable[[], Any]]:
    """As `cpu_calls`, on an NVIDIA GPU."""
    calls = own_calls(function, values, "cuda") | jax_call(function, values)
    torch = installed("torch")
    if torch is not None:
        tensors = [torch.from_numpy(value).cuda() for value in values]
        torch._dynamo.reset()  # or programs after the eighth run as they are written
        fast = torch.compile(lambda *args: function(torch, *args), dynamic=False)

        def copied(result: Any) -> Any:
            parts = result if isinstance(result, tuple | list) else [result]
            return [value.cpu().numpy() for value in parts]

        calls["torch"] = lambda: copied(function(torch, *tensors))
        calls["inductor"] = lambda: copied(fast(*tensors))
    cupy = installed("cupy")
    if cupy is not None:
        theirs = [cupy.asarray(value) for value in values]

        def fetched(result: Any) -> Any:
            parts = result if isinstance(result, tuple | list) else [result]
            return [cupy.asnumpy(value) for value in parts]

        calls["cupy"] = lambda: fetched(function(cupy, *theirs))
    return calls


def measure(name: str, size: int, repeat: int, contenders: Contenders,
            without: Collection[str] = ()) -> dict[str, float]:  # fmt: skip
    """Seconds of each package that runs the program; ours must agree with NumPy in float64."""
    function, inputs, _ = PROGRAMS[name]
    values = inputs(np.random.default_rng(0), size)
    wide = [v.astype(np.float64) if v.dtype == np.float32 else v for v in values]
    expected = read(function(np, *wide))
    calls = {}
    for package, call in contenders(function, values).items():
        if package in without:
            continue
        try:
            results = call()
        except Exception:
            if package in OURS:
                raise
            continue  # the package lacks a name
        calls[package] = call
        for a, b in zip(results, expected, strict=True) if package in OURS else ():
            scale = float(np.max(np.abs(b), initial=1e-3))
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * scale, err_msg=name)
    return dict(zip(calls, alternating(list(calls.values()), repeat), strict=True))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="only these")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--inductor", action="store_true", help="compile torch's programs as well")
    parser.add_argument("--small", action="store_true", help="the smallest size of each only")
    options = parser.parse_args()
    without = () if options.inductor else ("inductor",)
    on_gpu = options.device == "cuda"
    contenders = cuda_calls if on_gpu else cpu_calls
    peers = ["jax", "torch", "cupy", "inductor"] if on_gpu else ["numpy", "jax", "torch", "mlx"]
    packages = [*OURS, *peers]
    rows, ratios = [], {package: [] for package in OURS}
    for name in options.programs or PROGRAMS:
        sizes = PROGRAMS[name][2]
        for size in sizes[:1] if options.small else sizes:
            seconds = measure(name, size, options.repeat, contenders, without)
            best = min(value for key, value in seconds.items() if key not in ratios)
            for key, values in ratios.items():
                values.append(seconds[key] / best)
            rows.append([
                name, size, *(show(seconds[p]) if p in seconds else "-" for p in packages),
                f"{ratios['compiled'][-1]:.2f}", f"{ratios['eager'][-1]:.2f}",
            ])  # fmt: skip
            print(*rows[-1], file=sys.stderr, flush=True)  # a run that is stopped has shown these
    table("Everyday programs", ["program", "size", *packages, "compiled", "eager"], rows)
    for key, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{key} / best of the others: geometric mean {mean:.2f}, worst {max(values):.2f}")


if __name__ == "__main__":
    main()
