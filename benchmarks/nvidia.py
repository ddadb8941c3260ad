"""NVIDIA GPUs: kernels against their CUDA C++ twins, arrays against torch and CuPy, launches.

    python benchmarks/nvidia.py [--part PART]

The parts are twins, memory, arrays, products, libraries, transforms and launch. Needs
``metalloid[cuda]``, CuPy and torch; libraries: ``metalloid[cuda-math]``. Times are medians of
events around each launch; all are taken in turns in one run. (A script called cuda.py would hide
the package cuda.)
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
_ONE = "uint i [[thread_position_in_grid]]"
#: Kernels of one element a thread: parameters, what they do, and bytes that each element moves.
_ONE_EACH = {
    "saxpy": ("device float* y, device const float* x", "y[i] = 0.5f * x[i] + y[i];", 12),
    "saxpy, i < n": ("device float* y, device const float* x, constant uint& n",
                     "if (i < n) y[i] = 0.5f * x[i] + y[i];", 12),
    "saxpy of halves": ("device half* y, device const half* x", "y[i] = 0.5h * x[i] + y[i];", 6),
    "xor of bytes": ("device uchar* y, device const uchar* x", "y[i] ^= x[i];", 3),
    "exp": ("device float* y, device const float* x", "y[i] = exp(x[i]);", 8),
    "sin": ("device float* y, device const float* x", "y[i] = sin(x[i]);", 8),
    "fill": ("device float* y", "y[i] = 0.5f;", 4),
}  # fmt: skip


def gpu_seconds(actions: Sequence[Action], stream: Any, repeat: int) -> list[float]:
    """Medians of the GPU's own time of several actions, in turns; all use `stream`.

    The GPU is kept busy while Python prepares an action, so that it does not wait within.
    """
    times: list[list[float]] = [[] for _ in actions]
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    for turn in range(repeat + 3):
        for index, action in enumerate(actions):
            with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
                torch.cuda._sleep(_CYCLES_BEFORE)
            start.record(stream)
            action()
            end.record(stream)
            end.synchronize()
            if turn >= 3:
                times[index].append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
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
    transpose = mtl.library(_TRANSPOSE, device="cuda").transpose
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
        kernel = transpose if name == "transpose" else lib[name]
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


def memory(stream: Any, repeat: int) -> None:
    """Kernels that move one element a thread, next to a copy."""
    n = 1 << 26
    x, y = (buffer(np.zeros(n, np.float32)) for _ in range(2))
    source, target = (torch.zeros(1 << 28, device="cuda") for _ in range(2))
    texts = "".join(
        f"kernel void k{number}({parameters}, {_ONE}) {{ {body} }}\n"
        for number, (parameters, body, _) in enumerate(_ONE_EACH.values())
    )
    lib = mtl.library(f"#include <metal_stdlib>\nusing namespace metal;\n{texts}", device="cuda")
    all_kernels = [lib.function(f"k{number}") for number in range(len(_ONE_EACH))]
    values = [(y, x, n)[: len(kernel.signature.arguments)] for kernel in all_kernels]
    actions: list[Action] = [
        lambda kernel=kernel, rest=rest: kernel(*rest, threads=n)  # type: ignore[misc]
        for kernel, rest in zip(all_kernels, values, strict=True)
    ]
    *seconds, copy = gpu_seconds([*actions, lambda: target.copy_(source)], stream, repeat)
    bandwidth = 8 * (1 << 28) / copy
    rows = [
        (name, micro(each), f"{100 * moved * n / each / bandwidth:.0f} %", kernel.engine)
        for (name, (_, _, moved)), each, kernel in zip(
            _ONE_EACH.items(), seconds, all_kernels, strict=True
        )
    ]
    table(f"One element a thread, 2^26; a copy moves {bandwidth / 1e12:.2f} TB/s",
          ("", "time", "of the copy's bandwidth", "engine"), rows)  # fmt: skip


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
        share = moved / own / bandwidth
        rows.append((name, micro(own), micro(other), f"{own / other:.2f}", f"{100 * share:.0f} %",
                     _difference(make(), peer())))  # fmt: skip
    table(f"Arrays; a copy moves {bandwidth / 1e12:.2f} TB/s",
          ("", "metalloid", "torch", "ratio", "of the copy's bandwidth", "off"), rows)  # fmt: skip


def _difference(own: Any, other: Any) -> str:
    """The difference of the last few million elements of two results, over the largest."""
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
        with mtl.config.scope(products="kernels"):
            own, blas = gpu_seconds(actions, stream, repeat)
            off = _difference(mtl.astype(x @ y, mtl.float32), (a @ b).float())
        rows.append((label, micro(own), micro(blas), f"{blas / own:.2f}",
                     f"{2 * n**3 / own / 1e12:.1f}", off))  # fmt: skip
    mtl.config.tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    table("Products of 4096 x 4096; part of cuBLAS's speed", ("", "metalloid", "cuBLAS", "part",
          "TFLOP/s", "off"), rows)  # fmt: skip


def _product(x: Any, y: Any) -> Action:
    return lambda: mtl.async_eval(x @ y)


def libraries(stream: Any, repeat: int) -> None:
    """NVIDIA's libraries called from here, and from torch."""
    torch.backends.cuda.matmul.allow_tf32 = False

    def both(*shape: int, dtype: Any = torch.float32) -> tuple[Any, Any]:
        theirs = torch.randn(*shape, device="cuda", dtype=dtype)
        return mtl.from_dlpack(theirs), theirs

    def symmetric(*shape: int) -> tuple[Any, Any]:
        _, x = both(*shape)
        x = (x @ x.mT / shape[-1] + torch.eye(shape[-1], device="cuda")).contiguous()
        return mtl.from_dlpack(x), x

    la, ta = mtl.linalg, torch.linalg
    cases: list[tuple[str, tuple[Any, Any], Callable[[Any], Any], Callable[[Any], Any]]] = [
        (f"{name} product, 4096", both(4096, 4096, dtype=getattr(torch, name)), lambda x: x @ x,
         lambda x: x @ x)
        for name in ("float16", "bfloat16", "float32", "float64", "complex64")
    ]  # fmt: skip
    square = both(4096, 4096)
    cases += [
        ("products, 512 of 256 x 256", both(512, 256, 256), lambda x: x @ x.mT, lambda x: x @ x.mT),
        ("solve, 4096, one side", square, lambda x: la.solve(x, x[:, :1]),
         lambda x: ta.solve(x, x[:, :1])),
        ("solve, 1000 of 32 x 32", symmetric(1000, 32, 32), lambda x: la.solve(x, x),
         lambda x: ta.solve(x, x)),
        ("inv, 2048", both(2048, 2048), la.inv, ta.inv),
        ("det, 2048", both(2048, 2048), la.det, ta.det),
        ("cholesky, 4096", symmetric(4096, 4096), la.cholesky, ta.cholesky),
        ("qr, 2048", both(2048, 2048), lambda x: la.qr(x)[0], lambda x: ta.qr(x)[0]),
        ("eigh, 2048", symmetric(2048, 2048), lambda x: la.eigh(x)[1], lambda x: ta.eigh(x)[1]),
        ("eigh, 100 of 64 x 64", symmetric(100, 64, 64), lambda x: la.eigh(x)[1],
         lambda x: ta.eigh(x)[1]),
        ("svd, 1024", both(1024, 1024), lambda x: la.svd(x)[0], lambda x: ta.svd(x)[0]),
        ("fft, 2^24", both(2**24, dtype=torch.complex64), mtl.fft.fft, torch.fft.fft),
        ("fft, 4096 x 4096", both(4096, 4096, dtype=torch.complex64), mtl.fft.fft, torch.fft.fft),
        ("fft2, 4096 x 4096", both(4096, 4096, dtype=torch.complex64), mtl.fft.fft2,
         torch.fft.fft2),
        ("rfft, 2^24", both(2**24), mtl.fft.rfft, torch.fft.rfft),
        ("irfft, 2^23 + 1", both(2**23 + 1, dtype=torch.complex64), mtl.fft.irfft,
         torch.fft.irfft),
    ]  # fmt: skip
    rows = []
    for name, (own, their), ours, theirs in cases:
        actions = [_evaluated(lambda f=ours, x=own: f(x)), lambda f=theirs, x=their: f(x)]
        a, b = gpu_seconds(actions, stream, max(3, repeat // 3))
        rows.append((name, micro(a), micro(b), f"{a / b:.2f}"))
    table("By cuBLAS, cuSOLVER and cuFFT", ("", "metalloid", "torch", "ratio"), rows)


def transforms(stream: Any, repeat: int) -> None:
    """Fourier transforms by our own kernels, and by torch, which has cuFFT."""
    rows = []
    for shape in ((2**24,), (2**20,), (4096, 4096), (2**14, 1024), (2**16, 243), (10**7 + 19,)):
        x = torch.randn(*shape, device="cuda", dtype=torch.complex64)
        own = mtl.from_dlpack(x)
        with mtl.config.scope(transforms="kernels"):
            actions = [_evaluated(lambda x=own: mtl.fft.fft(x)), lambda x=x: torch.fft.fft(x)]
            a, b = gpu_seconds(actions, stream, max(3, repeat // 3))
            off = _difference(mtl.real(mtl.fft.fft(own)), torch.fft.fft(x).real)
        size = " x ".join(map(str, shape))
        rows.append((size, micro(a), micro(b), f"{a / b:.2f}", off))
    table(
        "Complex transforms along the last axis", ("", "metalloid", "torch", "ratio", "off"), rows
    )


def launch(stream: Any, repeat: int) -> None:
    """The cost of a launch on this end, with the same arguments."""
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

    def per(action: Action, count: int = 500) -> float:  # less than the driver's queue holds
        least = float("inf")
        for _ in range(8 * repeat):
            started = time.perf_counter()
            for _ in range(count):
                action()
            least = min(least, (time.perf_counter() - started) / count)
            device.synchronize()
        return least

    ours = lambda: kernel(x, y, 2.0, threads=1024)  # noqa: E731
    torch.cuda._sleep(1000 * _CYCLES_BEFORE)  # until its clock is at its highest
    device.synchronize()
    timed = per(ours)
    in_a_row = per(ours, 10_000)
    with mtl.config.scope(timing=False):
        plain = per(ours)
    cupy_x, cupy_y = cupy.zeros(1024, cupy.float32), cupy.zeros(1024, cupy.float32)
    theirs = per(lambda: twin((4,), (256,), (cupy_x, cupy_y, np.float32(2), np.uint32(1024))))
    base = per(bare)
    graph = mtl.Graph("cuda")
    with graph:
        for _ in range(_IN_A_GRAPH):
            ours()

    def batch() -> None:
        for _ in range(20):
            graph.launch()
        device.synchronize()

    in_graph = per(batch, 1) / (20 * _IN_A_GRAPH)
    rows = [(name, micro(t), f"{t / base:.2f}") for name, t in (
        ("cuLaunchKernel by cuda.bindings", base), ("metalloid", timed),
        ("metalloid, 10,000 in a row", in_a_row),
        ("metalloid, timing=False", plain), ("CuPy's RawKernel", theirs),
        (f"metalloid, one of {_IN_A_GRAPH} in a graph, with its end", in_graph))]  # fmt: skip
    table("A launch of saxpy, two buffers and a number", ("", "time", "ratio"), rows)


PARTS = {
    "twins": twins,
    "memory": memory,
    "arrays": arrays,
    "products": products,
    "libraries": libraries,
    "transforms": transforms,
    "launch": launch,
}


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
