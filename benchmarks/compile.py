"""What compiling costs, cold and from the cache.

``python benchmarks/compile.py [--mlx FOLDER] [--ggml FOLDER]``, where the folders are a checkout of
MLX and the one in which ``ggml-metal.metal`` lies.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import show, table

#: Runs in a process of its own: each step needs what the one before it left in the cache.
STEP = """
import json, sys, time
import numpy as np
import metalloid as mtl
source = '''
#include <metal_stdlib>
using namespace metal;
kernel void gelu(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
    y[i] = 0.5 * x[i] * (1 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}''' + sys.argv[1]
started = time.perf_counter()
mtl.default_device()
device = time.perf_counter()
kernel = mtl.library(source).gelu
compiled = time.perf_counter()
x = np.ones(4, np.float32)
kernel(np.empty_like(x), x, threads=4)
launched = time.perf_counter()
print(json.dumps([device - started, compiled - device, launched - compiled]))
"""


#: One kernel of a file, in a process of its own.
FILE_STEP = """
import json, sys, time
import metalloid as mtl
path, kernel, folders, defines, constants = json.loads(sys.argv[1])
mtl.default_device()
open_library = mtl.library  # what is imported at first use, NumPy above all, is not counted
started = time.perf_counter()
lib = open_library(path=path, include_dirs=folders, defines=defines)
library = time.perf_counter()
lib.function(kernel, constants)
compiled = time.perf_counter()
print(json.dumps([len(lib), library - started, compiled - library]))
"""

#: Files below MLX's kernels, and a kernel of each.
MLX_KERNELS = {
    "softmax": "block_softmax_float32",
    "unary": "v_Expfloat32float32",
    "binary": "vv_Addfloat32",
    "quantized": "affine_qmv_float_gs_64_b_4_batch_1",
    "steel/gemm/kernels/steel_gemm_fused": (
        "steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2"
    ),
}
GGML_KERNELS = {
    "kernel_rms_norm_f32": {},
    "kernel_mul_mm_q4_K_f32": {f"FC_mul_mm_{name}": 1 for name in ("ne12", "ne13", "r2", "r3")},
    "kernel_flash_attn_ext_f16_dk128_dv128": {"FC_flash_attn_ext_nsg": 4},
}


def in_process(cache: str, script: str, argument: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", script, argument],
        env={**os.environ, "METALLOID_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def small_kernel() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first = in_process(cache, STEP, "")
        new = [in_process(cache, STEP, f"// {number}") for number in range(5)]
        again = [in_process(cache, STEP, "") for _ in range(5)]
    rows = [
        ("first use on a machine", *map(show, first)),
        ("a new kernel", *(show(min(column)) for column in zip(*new, strict=True))),
        ("the same in a new process", *(show(min(column)) for column in zip(*again, strict=True))),
    ]
    table(
        "A small kernel (best of 5 processes)",
        ("", "open device", "text to kernel", "first launch"),
        rows,
    )


def file_row(path: Path, kernel: str, folders: list[str], defines: dict, constants: dict) -> tuple:
    """A table's row; what a process before it compiled is no help: each starts without a cache."""
    argument = json.dumps([str(path), kernel, folders, defines, constants])
    cold, cached = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            in_process(cache, STEP, "")  # what is done once on a machine
            cold.append(in_process(cache, FILE_STEP, argument))
            cached.append(min((in_process(cache, FILE_STEP, argument) for _ in range(3)), key=sum))
    fastest, again = min(cold, key=sum), min(cached, key=sum)
    return (
        path.stem,
        f"{path.stat().st_size / 1000:.0f} kB",
        int(fastest[0]),
        show(fastest[1]),
        show(fastest[2]),
        show(again[1] + again[2]),
    )


def real_files(mlx: Path | None, ggml: Path | None) -> None:
    rows = []
    for name, kernel in MLX_KERNELS.items():
        path = (mlx or Path()) / "mlx/backend/metal/kernels" / f"{name}.metal"
        if mlx is None or not path.is_file():
            rows.append((Path(name).name, "skipped: --mlx names no checkout of MLX"))
        else:
            rows.append(file_row(path, kernel, [str(mlx)], {}, {}))
    for kernel, constants in GGML_KERNELS.items():
        path = (ggml or Path()) / "ggml-metal.metal"
        if ggml is None or not path.is_file():
            rows.append((kernel, "skipped: --ggml names no folder with ggml-metal.metal"))
        else:
            folders = [str(ggml), str(ggml.parent)]
            row = file_row(path, kernel, folders, {"GGML_METAL_HAS_BF16": 1}, constants)
            rows.append((kernel, *row[1:]))
    table(
        "One kernel of a large file (best of 3)",
        ("", "text", "kernels", "library", "kernel", "both, cached"),
        [(*row, *("",) * (6 - len(row))) for row in rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mlx", type=Path, help="a checkout of MLX")
    parser.add_argument("--ggml", type=Path, help="the folder of ggml-metal.metal")
    options = parser.parse_args()
    small_kernel()
    real_files(options.mlx, options.ggml)


if __name__ == "__main__":
    main()
