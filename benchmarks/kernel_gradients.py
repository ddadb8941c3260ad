"""The time of adjoints of kernels, as multiples of that of their kernels.

    python benchmarks/kernel_gradients.py [--device cpu] [--only matmul] [--tiny]

Kernel and adjoint take turns. Wall clock is the median of runs that wait for the end of some
launches. That of the adjoint includes the count of its tape, zeros for the adjoints of inputs that
it adds to, and adjoints of outputs if it changes them, all of which kernels on the device write.
Times on the device are the sums of those of the same launches, without the time between them, and
without that of zeros. With ``--processor-time`` the time of all cores is measured, which other
processes disturb less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import metalloid as mtl
from metalloid.bench.measure import medians

#: Launches of a run on a GPU.
LAUNCHES = 20

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void fill(device float *x, constant float &value, uint i [[thread_position_in_grid]]) {
  x[i] = value;
}

kernel void chain(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  float a = x[i];
  a = a > 0 ? tanh(a) * exp(-a * a) : sin(a) + 0.5f * a;
  y[i] = a * a + sqrt(1 + a * a);
}

kernel void softmax(device const float *x, device float *y, constant int &n,
                    uint row [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]]) {
  device const float *p = x + row * n;
  float high = -INFINITY;
  for (int k = lane; k < n; k += 32) high = max(high, p[k]);
  high = simd_max(high);
  float sum = 0;
  for (int k = lane; k < n; k += 32) sum += exp(p[k] - high);
  sum = simd_sum(sum);
  for (int k = lane; k < n; k += 32) y[row * n + k] = exp(p[k] - high) / sum;
}

kernel void gather(device const float *x, device const int *index, device float *y,
                   uint i [[thread_position_in_grid]]) {
  y[i] = x[index[i]] * x[index[i]];
}

kernel void matmul(device const float *a, device const float *b, device float *c, constant int &n,
                   uint2 at [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[at.y * n + k] * b[k * n + at.x];
  c[at.y * n + at.x] = sum;
}

// The recurrence of mlx-lm's gated_delta kernel.
kernel void gated_delta(device const float *q, device const float *k, device const float *v,
                        device const float *g, device const float *beta, device float *y,
                        constant int &steps, uint2 at [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  constexpr int n = 4, heads = 4, keys = 128, values = 64;
  int head = at.y / values, value = at.y % values;
  float state[n] = {0, 0, 0, 0};
  for (int t = 0; t < steps; t++) {
    int row = t * heads + head;
    float memory = 0, out = 0;
    for (int j = 0; j < n; j++) {
      state[j] *= g[row];
      memory += state[j] * k[row * keys + lane * n + j];
    }
    float delta = (v[row * values + value] - simd_sum(memory)) * beta[row];
    for (int j = 0; j < n; j++) {
      state[j] += k[row * keys + lane * n + j] * delta;
      out += state[j] * q[row * keys + lane * n + j];
    }
    out = simd_sum(out);
    if (lane == 0) y[row * values + value] = out;
  }
}
"""


class Case(NamedTuple):
    """A kernel and its arguments by name."""

    name: str
    arguments: dict[str, Any]
    launch: dict[str, Any]


def cases(tiny: bool) -> Iterator[Case]:
    """The cases, in sizes that only show that they work if `tiny`."""
    random = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return random.uniform(0.1, 0.9, shape).astype(np.float32)

    n = 2**10 if tiny else 2**22
    yield Case("chain", {"x": floats(n) - 0.5, "y": floats(n)}, {"threads": n})
    rows, columns = (4, 100) if tiny else (2048, 1024)
    yield Case(
        "softmax",
        {"x": floats(rows, columns), "y": floats(rows, columns), "n": columns},
        {"threads": rows * 32, "group_size": 32},
    )
    index = random.integers(0, n, n, dtype=np.int32)
    yield Case("gather", {"x": floats(n), "index": index, "y": floats(n)}, {"threads": n})
    n = 16 if tiny else 256
    yield Case(
        "matmul",
        {"a": floats(n, n), "b": floats(n, n), "c": floats(n, n), "n": n},
        {"threads": (n, n)},
    )
    t = 4 if tiny else 64
    yield Case(
        "gated_delta",
        {
            "q": floats(t, 4, 128) / 12, "k": floats(t, 4, 128) / 12, "v": floats(t, 4, 64),
            "g": floats(t, 4), "beta": floats(t, 4), "y": floats(t, 4, 64), "steps": t,
        },
        {"threads": (32, 256), "group_size": (32, 4)},
    )  # fmt: skip


class Times(NamedTuple):
    """Seconds of a kernel and of its adjoint: of runs, and of all launches on the device."""

    primal: float
    adjoint: float
    primal_on_device: float
    adjoint_on_device: float


def measure(case: Case, device: str, processor_time: bool) -> Times:
    """Seconds of the kernel and of its adjoint."""
    library = mtl.library(SOURCE, device=device)
    kernel, fill = library[case.name], library["fill"]
    adjoint = kernel.vjp()
    values = [
        mtl.Buffer(value, kernel.device) if isinstance(value, np.ndarray) else value
        for value in case.arguments.values()
    ]

    given, shadows = (
        [
            mtl.Buffer(np.ones(case.arguments[name].shape, np.float32), kernel.device)
            for name in names
        ]
        for names in (adjoint.outputs, adjoint.wrt)
    )
    count = 1 if kernel.device.memory == "host" else LAUNCHES

    def run_primal() -> None:
        for _ in range(count):
            event = kernel(*values, **case.launch, wait=False)
        event.wait()

    def run_adjoint() -> None:
        for _ in range(count):
            for buffer, is_consumed in zip(given, adjoint.consumed, strict=True):
                if is_consumed:
                    fill(buffer, 1.0, threads=buffer.nbytes // 4, wait=False)
            args = [*values, *given, *shadows]
            stored = adjoint.storable(args, **case.launch)
            for name, buffer in zip(adjoint.wrt, shadows, strict=True):
                if name not in stored:
                    fill(buffer, 0.0, threads=buffer.nbytes // 4, wait=False)
            event = adjoint.launch(args, **case.launch, stored=stored)
        event.wait()

    runs = [run_primal, run_adjoint]
    if processor_time:
        primal, reverse = (min(processor_seconds(run) for _ in range(15)) for run in runs)
    else:
        primal, reverse = medians(runs)
    on_device = [seconds_on_device(run) / count for run in runs]
    return Times(primal / count, reverse / count, *on_device)


def seconds_on_device(run: Callable[[], object]) -> float:
    """The least time of three runs for all launches but those of zeros."""
    totals = []
    for _ in range(3):
        with mtl.profile(counts=False) as profile:
            run()
        totals.append(sum(x.device_seconds for x in profile.launches if x.kernel != "fill"))
    return min(totals)


def processor_seconds(run: Callable[[], object]) -> float:
    """The time of all cores for a run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    print("| kernel | kernel, ms | adjoint, ms | ratio | on the device | | ratio |")
    print("|---" * 7 + "|")
    for case in cases(options.tiny):
        if options.only is None or case.name in options.only:
            times = measure(case, options.device, options.processor_time)
            pairs = times[:2], times[2:]
            texts = [f"{a * 1e3:.3g} | {b * 1e3:.3g} | {b / a:.1f}" for a, b in pairs]
            print(f"| {case.name} | {' | '.join(texts)} |", flush=True)


if __name__ == "__main__":
    main()
