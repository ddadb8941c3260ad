"""A training step of a perceptron (784-512-10, batch 256, Adam), here and in other libraries.

Run it by ``python benchmarks/perceptron.py``: milliseconds per step, compiled, measured in turns.
``METALLOID_DEVICE`` chooses the device; MLX, JAX and torch take part if they are installed, and
torch.compile on NVIDIA GPUs.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import best, installed, show, table

import metalloid as mtl

REPEATS, STEPS = 3, 20
_rng = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return _rng.standard_normal(shape, np.float32) * np.float32(0.03)


PARAMS = {"w1": _normal(784, 512), "b1": np.zeros(512, np.float32),
          "w2": _normal(512, 10), "b2": np.zeros(10, np.float32)}  # fmt: skip
X = _normal(256, 784)
IS_CLASS = (_rng.integers(0, 10, 256)[:, None] == np.arange(10)).astype(np.float32)


def _is_gpu() -> bool:
    return mtl.default_device().name.startswith("cuda")


def training(
    xp: Any, array: Callable[[np.ndarray], Any], value_and_grad: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step, and its parameters with the moments of Adam, in a library with NumPy's names."""
    x, is_class = array(X), array(IS_CLASS)

    def loss(p: Any) -> Any:
        z = xp.maximum(x @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"]
        top = z.max(axis=1, keepdims=True)
        total = xp.log(xp.exp(z - top).sum(axis=1, keepdims=True)) + top
        return ((total - z) * is_class).sum() / 256

    def step(p: Any, m: Any, v: Any, k: Any) -> Any:
        _, g = value_and_grad(loss)(p)
        m = {n: 0.9 * m[n] + 0.1 * g[n] for n in p}
        v = {n: 0.999 * v[n] + 0.001 * g[n] * g[n] for n in p}
        mean = {n: m[n] / (1 - 0.9**k) for n in p}
        scale = {n: xp.sqrt(v[n] / (1 - 0.999**k)) + 1e-8 for n in p}
        return {n: p[n] - 1e-3 * mean[n] / scale[n] for n in p}, m, v

    params = {name: array(value) for name, value in PARAMS.items()}
    zeros = {name: array(np.zeros_like(value)) for name, value in PARAMS.items()}
    return step, (params, zeros, zeros)


def steps(step: Callable[..., Any], state: tuple[Any, ...], start: Callable[[Any], object],
          number: Callable[[float], Any] = float) -> Callable[[], np.ndarray]:  # fmt: skip
    """A function that runs several steps, and reads some parameters at the end."""

    def run() -> np.ndarray:
        now = state
        for k in range(1, STEPS + 1):
            now = step(*now, number(k))
            start(now)
        return np.asarray(now[0]["b2"])

    return run


def _torch_steps(torch: Any, is_compiled: bool = False) -> Callable[[], np.ndarray]:
    """The loss with its derivative, and the update, are compiled apart."""
    is_gpu = _is_gpu()
    device = "cuda" if is_gpu else "cpu"
    x, is_class = (torch.tensor(value, device=device) for value in (X, IS_CLASS))
    start = {name: torch.tensor(value, device=device) for name, value in PARAMS.items()}
    p = {name: value.clone().requires_grad_() for name, value in start.items()}
    adam = torch.optim.Adam(p.values(), lr=1e-3, capturable=is_compiled and is_gpu)

    def loss() -> Any:
        z = torch.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return ((torch.logsumexp(z, 1, keepdim=True) - z) * is_class).sum() / 256

    evaluate, update = loss, adam.step
    if is_compiled:
        evaluate, update = torch.compile(loss), torch.compile(adam.step)

    def run() -> np.ndarray:
        with torch.no_grad():
            for name, value in start.items():
                p[name].copy_(value)
            for state in adam.state.values():
                for value in state.values():
                    value.zero_()
        for _ in range(STEPS):
            adam.zero_grad()
            evaluate().backward()
            update()
        return np.asarray(p["b2"].detach().cpu())

    return run


def _own_steps(library: Any, compiled: bool) -> Callable[[], np.ndarray]:
    step, state = training(library, library.asarray, library.value_and_grad)
    step = library.compile(step) if compiled else step
    return steps(step, state, lambda now: library.async_eval(*now))


def _mlx_steps(mx: Any) -> Callable[[], np.ndarray]:
    step, state = training(mx, mx.array, mx.value_and_grad)
    return steps(mx.compile(step), state, mx.async_eval, mx.array)


def _jax_steps(jax: Any) -> Callable[[], np.ndarray]:
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    step, state = training(jax.numpy, jax.numpy.asarray, jax.value_and_grad)
    return steps(jax.jit(step), state, lambda now: None)


LIBRARIES: dict[str, tuple[str, Callable[[Any], Callable[[], np.ndarray]]]] = {
    "compiled": ("metalloid", lambda library: _own_steps(library, True)),
    "eager": ("metalloid", lambda library: _own_steps(library, False)),
    "MLX, compiled": ("mlx.core", _mlx_steps),
    "JAX, jit": ("jax", _jax_steps),
    "torch": ("torch", _torch_steps),
    "torch.compile": ("torch", lambda torch: _torch_steps(torch, True)),
}


def _measure(name: str) -> dict[str, Any]:
    """In a process of its own, as the threads of a library slow down those of others."""
    command = [sys.executable, __file__, name]
    result: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return result


def main() -> None:
    """Measure all libraries in turns; their results agree."""
    if len(sys.argv) > 1:
        module, make = LIBRARIES[sys.argv[1]]
        run = make(importlib.import_module(module))
        result = run().tolist()
        print(json.dumps({"result": result, "seconds": best(run, 5) / STEPS}))
        return
    names = [
        name for name, (module, _) in LIBRARIES.items()
        if installed(module) is not None and (_is_gpu() or "torch.compile" not in name)
    ]  # fmt: skip
    seconds = dict.fromkeys(names, float("inf"))
    expected = _measure(names[0])["result"]
    for _ in range(REPEATS):
        for name in names:
            measured = _measure(name)
            np.testing.assert_allclose(measured["result"], expected, 1e-3, 1e-6, err_msg=name)
            seconds[name] = min(seconds[name], measured["seconds"])
    rows = [[name, show(each)] for name, each in seconds.items()]
    table(f"A step of training, {mtl.default_device()}", ["", "a step"], rows)


if __name__ == "__main__":
    main()
