"""NVIDIA GPUs: kernels against their CUDA C++ twins, arrays against torch and CuPy, launches.

    python benchmarks/nvidia.py [--part twins|arrays|products|launch]

Needs ``metalloid[cuda]``, CuPy and torch. Times are medians of events around each launch; all are
taken in turns in one run. (A script called cuda.py would hide the package cuda.)
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch
from cuda.bindings import driver
from timing import table

import metalloid as mtl
from metalloid.bench.cases import kernels

Action = Callable[[], object]
_IN_A_GRAPH = 100
_CYCLES_BEFORE = 2_000_000  # a millisecond
_TRANSPOSE = """
kernel void transpose(device float* y, device const float* x, constant uint& n,
                      uint2 group [[threadgroup_position_in_grid]],
                      uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[32][33];
  uint column = group.x * 32 + t.x, row = group.y * 32 + t.y;
  for (uint k = 0; k < 32; k += 8) tile[t.y + k][t.x] = x[(row + k) * n + column];
  threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  column = group.y * 32 + t.x, row = group.x * 32 + t.y;
  for (uint k = 0; k < 32; k += 8) y[(row + k) * n + column] = tile[t.x][t.y + k];
}
"""


def gpu_seconds(actions: Sequence[Action], stream: Any, repeat: int) -> list[float]:
    """Medians of the GPU's own time of several actions, in turns; all use `stream`.

    The GPU is kept busy while Python prepares an action, so that it does not wait within.
    """
    times: list[list[float]] = [[] for _ in actions]
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    for turn in range(repeat + 3):
        for place, action in enumerate(actions):
            with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
                torch.cuda._sleep(_CYCLES_BEFORE)
            start.record(stream)
            action()
            end.record(stream)
            end.synchronize()
            if turn >= 3:
                times[place].append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return [statistics.median(each) for each in times]


def micro(seconds: float) -> str:
    """Microseconds."""
    return f"{seconds * 1e6:.1f} us"


def buffer(array: np.ndarray) -> mtl.Buffer:
    """An array on the GPU."""
    return mtl.Buffer(array, device="cuda")


def twins(stream: Any, repeat: int) -> None:
    """The same kernel in MSL and in CUDA C++."""
    lib = kernels(device="cuda", math_mode="relaxed")
    turned = mtl.library(_TRANSPOSE, device="cuda").transpose
    text = (Path(__file__).parent / "nvidia_rivals/kernels.cu").read_text()
    module = cupy.RawModule(code=text, options=("-std=c++17",))
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    n, side, bodies, field = 1 << 26, 2048, 32768, 8192
    c = np.array([-0.8, 0.156], np.float32)
    bytes_ = rng.integers(0, 256, 1 << 28, dtype=np.uint8)
    share = 16 * 256
    cases: list[tuple[str, Action, Action, Any, Any]] = []

    def case(name: str, arrays: Sequence[np.ndarray], rest: Sequence[Any], threads: Any, group: Any,
             more: Sequence[Any] = (), blocks: Any = None) -> None:  # fmt: skip
        own = [buffer(a) for a in arrays]
        theirs = [cupy.asarray(a) for a in arrays]
        kernel = turned if name == "transpose" else lib[name]
        size = group if isinstance(group, tuple) else (group,)
        grid = threads if isinstance(threads, tuple) else (threads,)
        blocks = blocks or tuple(-(-g // s) for g, s in zip(grid, size, strict=True))
        twin = module.get_function(name)
        arguments = (*theirs, *map(_by_value, rest), *more)
        numbers = [_plain(value) for value in rest]

        def ours() -> object:
            return kernel(*own, *numbers, threads=threads, group_size=group)

        cases.append((name, ours, lambda: twin(blocks, size, arguments), own[0], theirs[0]))

    u, i = np.uint32, np.int32
    case("saxpy", [floats(n), floats(n)], [np.float32(0.5)], n, 256, [u(n)])
    case("tree_reduction", [floats(n // 256), floats(n)], [], n, 256)
    case("prefix_sum", [floats(8192, 4096), floats(8192, 4096)], [u(4096)], 8192 * 256, 256)
    case("transpose", [floats(field, field), floats(field, field)], [u(field)],
         (field, field // 4), (32, 8))  # fmt: skip
    case(
        "stencil", [floats(field, field), floats(field, field)], [i(field)], (field, field), (32, 8)
    )
    case("nbody", [floats(bodies, 4), np.abs(floats(bodies, 4))], [i(bodies)], bodies, 256)
    case("julia", [np.zeros((3072, 4096), np.int32)], [i(4096), i(3072), c], (4096, 3072), (32, 8))
    case("matmul", [floats(side, side)] * 3, [i(side)], (side, side), (32, 8))
    case("tiled_matmul", [floats(side, side)] * 3, [u(side)], (side, side), (16, 16))
    case(
        "histogram", [np.zeros(256, np.uint32), bytes_], [u(share)], bytes_.size // share * 256, 256
    )
    rows = []
    for name, ours, twin, own, other in cases:
        own_s, twin_s = gpu_seconds([ours, twin], stream, repeat)
        ours(), twin()
        a, b = np.asarray(own).astype(np.float64), cupy.asnumpy(other).astype(np.float64)
        off = (
            0.0 if name in ("saxpy", "histogram") else np.abs(a - b).max() / (np.abs(b).max() or 1)
        )
        rows.append((name, micro(own_s), micro(twin_s), f"{own_s / twin_s:.2f}", f"{off:.1e}"))
    table("Kernels: MSL, the same in CUDA C++ (nvrtc), ratio (goal 1.05), difference",
          ("", "MSL", "CUDA C++", "ratio", "off"), rows)  # fmt: skip


def _by_value(value: Any) -> Any:
    """A vector as one value, as CuPy passes them."""
    return value.view(np.complex64)[0] if isinstance(value, np.ndarray) else value


def _plain(value: Any) -> Any:
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value.item()


def arrays(stream: Any, repeat: int) -> None:
    """Generated kernels at the speed of memory."""
    n = 1 << 28
    tx, ty = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    torch_x = torch.randn(8192, 4096, device="cuda")
    few = torch.randn(1 << 24, device="cuda")
    copied, cupy_few = torch.empty_like(tx), cupy.asarray(few)
    x, y, table_x, own_few = (
        mtl.asarray(t.cpu().numpy(), device="cuda") for t in (tx, ty, torch_x, few)
    )

    def softmax(a: Any) -> Any:
        e = mtl.exp(a - a.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def layer_norm(a: Any) -> Any:
        centred = a - a.mean(axis=1, keepdims=True)
        return centred * (1 / mtl.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5))

    cases: list[tuple[str, Callable[[], Any], Action, int]] = [
        ("x + y", lambda: x + y, lambda: torch.add(tx, ty), 12 * n),
        ("exp(-x x) sin(y)", lambda: mtl.exp(-x * x) * mtl.sin(y),
         lambda: torch.exp(-tx * tx) * torch.sin(ty), 12 * n),
        ("sum", lambda: x.sum(), lambda: tx.sum(), 4 * n),
        ("max", lambda: x.max(), lambda: tx.max(), 4 * n),
        ("argmax", lambda: x.argmax(), lambda: tx.argmax(), 4 * n),
        ("sums of columns (8192, 4096)", lambda: table_x.sum(axis=0), lambda: torch_x.sum(0),
         4 * torch_x.numel()),
        ("softmax (8192, 4096)", lambda: softmax(table_x), lambda: torch.softmax(torch_x, 1),
         8 * torch_x.numel()),
        ("layer norm (8192, 4096)", lambda: layer_norm(table_x),
         lambda: torch.nn.functional.layer_norm(torch_x, (4096,)), 8 * torch_x.numel()),
        ("running sum 2^24", lambda: mtl.cumulative_sum(own_few), lambda: few.cumsum(0), 8 << 24),
        ("sort 2^24 (CuPy)", lambda: mtl.sort(own_few), lambda: cupy.sort(cupy_few), 8 << 24),
        ("order 2^24 (CuPy)", lambda: mtl.argsort(own_few), lambda: cupy.argsort(cupy_few),
         12 << 24),
    ]  # fmt: skip
    (copy,) = gpu_seconds([lambda: copied.copy_(tx)], stream, repeat)
    bandwidth = 8 * n / copy
    rows = []
    for name, make, peer, moved in cases:
        own, other = gpu_seconds([_evaluated(make), peer], stream, repeat)
        part = moved / own / bandwidth
        rows.append((name, micro(own), micro(other), f"{own / other:.2f}", f"{100 * part:.0f} %",
                     _difference(make(), peer())))  # fmt: skip
    table(f"Arrays; a copy moves {bandwidth / 1e12:.2f} TB/s",
          ("", "metalloid", "torch", "ratio", "of the copy's bandwidth", "off"), rows)  # fmt: skip


def _difference(own: Any, other: Any) -> str:
    """Between the last few million elements of two results, beside the largest of them."""
    theirs = other.float().cpu().numpy() if isinstance(other, torch.Tensor) else cupy.asnumpy(other)
    a, b = (np.asarray(v).astype(np.float64).reshape(-1)[-(1 << 22) :] for v in (own, theirs))
    return f"{np.abs(a - b).max() / (np.abs(b).max() or 1):.1e}"


def _evaluated(make: Callable[[], Any]) -> Action:
    return lambda: mtl.async_eval(make())


def products(stream: Any, repeat: int) -> None:
    """Tiled kernels against cuBLAS."""
    rows = []
    for label in ("float32", "float32 as TF32", "float16", "bfloat16"):
        n, name = 4096, label.split()[0]
        mtl.config.tf32 = torch.backends.cuda.matmul.allow_tf32 = label.endswith("TF32")
        a, b = (torch.randn(n, n, device="cuda", dtype=getattr(torch, name)) for _ in range(2))
        x, y = (mtl.asarray(t.float().cpu().numpy(), device="cuda").astype(name) for t in (a, b))
        mtl.eval(x, y)
        actions = [_product(x, y), lambda a=a, b=b: a @ b]
        own, blas = gpu_seconds(actions, stream, repeat)
        off = _difference(mtl.astype(x @ y, mtl.float32), (a @ b).float())
        rows.append((label, micro(own), micro(blas), f"{blas / own:.2f}",
                     f"{2 * n**3 / own / 1e12:.1f}", off))  # fmt: skip
    mtl.config.tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    table("Products of 4096 x 4096; part of cuBLAS's speed", ("", "metalloid", "cuBLAS", "part",
          "TFLOP/s", "off"), rows)  # fmt: skip


def _product(x: Any, y: Any) -> Action:
    return lambda: mtl.async_eval(x @ y)


def launch(stream: Any, repeat: int) -> None:
    """What a launch costs this side, with the same arguments."""
    device = mtl.Buffer(4, device="cuda").device
    x, y = mtl.Buffer(4096, device="cuda"), mtl.Buffer(4096, device="cuda")
    kernel = kernels(device="cuda").saxpy
    text = (Path(__file__).parent / "nvidia_rivals/kernels.cu").read_text()
    twin = cupy.RawModule(code=text).get_function("saxpy")
    handle = driver.CUfunction(twin.kernel.ptr)
    import ctypes

    values = (x.address, y.address, 2.0, 1024)
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_uint)

    def bare() -> None:
        driver.cuLaunchKernel(handle, 4, 1, 1, 256, 1, 1, 0, device.stream, (values, kinds), 0)

    def per(action: Action, count: int = 4000) -> float:
        least = float("inf")
        for _ in range(repeat):
            started = time.perf_counter()
            for _ in range(count):
                action()
            least = min(least, (time.perf_counter() - started) / count)
            device.synchronize()
        return least

    ours = lambda: kernel(x, y, 2.0, threads=1024)  # noqa: E731
    timed = per(ours)
    with mtl.config.scope(timing=False):
        plain = per(ours)
    cupy_x, cupy_y = cupy.zeros(1024, cupy.float32), cupy.zeros(1024, cupy.float32)
    theirs = per(lambda: twin((4,), (256,), (cupy_x, cupy_y, np.float32(2), np.uint32(1024))))
    base = per(bare)
    graph = mtl.Graph("cuda")
    with graph:
        for _ in range(_IN_A_GRAPH):
            ours()

    def several() -> None:
        for _ in range(20):
            graph.launch()
        device.synchronize()

    in_graph = per(several, 1) / (20 * _IN_A_GRAPH)
    rows = [(name, micro(t), f"{t / base:.2f}") for name, t in (
        ("cuLaunchKernel by cuda.bindings", base), ("metalloid", timed),
        ("metalloid, timing=False", plain), ("CuPy's RawKernel", theirs),
        (f"metalloid, one of {_IN_A_GRAPH} in a graph, with its end", in_graph))]  # fmt: skip
    table("A launch of saxpy, two buffers and a number", ("", "time", "ratio"), rows)


PARTS = {"twins": twins, "arrays": arrays, "products": products, "launch": launch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=tuple(PARTS))
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    device = mtl.Buffer(4, device="cuda").device
    print(device)
    stream = cupy.cuda.ExternalStream(int(device.stream))
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(int(device.stream))):
        for name in options.part or PARTS:
            PARTS[name](stream, options.repeat)


if __name__ == "__main__":
    main()
