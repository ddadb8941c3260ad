"""The cost of compiling, cold and from the cache.

``python benchmarks/compile.py [--mlx FOLDER] [--ggml FOLDER]``, where the folders are a checkout of
MLX and the one in which ``ggml-metal.metal`` lies (METALLOID_GGML names it as well). Next to the
time that passes stands that of the processor, which other work on the machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

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
import json, os, sys, time
import metalloid as mtl
path, kernel, folders, defines, constants = json.loads(sys.argv[1])
mtl.default_device()
open_library = mtl.library  # what is imported at first use, NumPy above all, is not counted
started, before = time.perf_counter(), os.times()
lib = open_library(path=path, include_dirs=folders, defines=defines)
library = time.perf_counter()
lib.function(kernel, constants)
compiled, after = time.perf_counter(), os.times()
processor = sum(after[:4]) - sum(before[:4])  # with that of the compilers
print(json.dumps([len(lib), library - started, compiled - library, processor]))
"""


class Case(NamedTuple):
    """A kernel to compile: where it is, relative to the folder of kernels, and with what."""

    label: str
    file: str
    kernel: str
    constants: dict[str, Any]


def gemm(label: str, types: str, tiles: str, aligned: bool) -> Case:
    """A product by MLX's steel: whether all sizes are multiples of a tile makes two programs."""
    constants = dict.fromkeys(("has_batch", "use_out_source", "do_axpby"), False)
    constants |= dict.fromkeys(("align_M", "align_N", "align_K"), aligned)
    file = "steel/gemm/kernels/steel_gemm_fused.metal"
    form = "aligned" if aligned else "ragged"
    kernel = f"steel_gemm_fused_{types}_bm64_bn64_bk16_{tiles}"
    return Case(f"steel gemm {label}, {form}", file, kernel, constants)


#: Of each kind of MLX's files.
MLX_KERNELS = (
    Case("unary", "unary.metal", "v_Expfloat32float32", {}),
    Case("binary", "binary.metal", "vv_Addfloat32", {}),
    Case("softmax", "softmax.metal", "block_softmax_float32", {}),
    Case("layer norm", "layer_norm.metal", "layer_normfloat32", {"has_w": True}),
    Case("sort", "sort.metal", "c_block_sort_float32_float32_bn256_tn4", {}),
    Case("quantized qmv", "quantized.metal", "affine_qmv_fast_float_gs_64_b_4_batch_0", {}),
    Case("quantized qmm", "quantized.metal", "affine_qmm_t_float_gs_64_b_4_alN_true_batch_0", {}),
    *(
        gemm(label, types, tiles, aligned)
        for label, types, tiles in (
            ("f32", "nn_float32_float32", "wm2_wn2"),
            ("f16", "nn_float16_float16", "wm2_wn2"),
            ("bf16", "nn_bfloat16_bfloat16", "wm2_wn2"),
            ("bf16, 2 simdgroups", "tn_bfloat16_bfloat16", "wm1_wn2"),
        )
        for aligned in (True, False)
    ),
    Case(
        "steel attention f32",
        "steel/attn/kernels/steel_attention.metal",
        "steel_attention_float32_bq32_bk16_bd128_wm4_wn1_maskfloat32",
        {"align_Q": True, "align_K": True, "has_mask": False, "do_causal": False,
         "has_sinks": False},
    ),
    Case(
        "steel conv f32",
        "steel/conv/kernels/steel_conv.metal",
        "implicit_gemm_conv_2d_float32_bm64_bn64_bk16_wm2_wn2_channel_l_filter_l",
        {},
    ),
)  # fmt: skip
GGML_KERNELS = (
    Case("rms norm", "ggml-metal.metal", "kernel_rms_norm_f32", {}),
    Case(
        "mul_mm q4_K", "ggml-metal.metal", "kernel_mul_mm_q4_K_f32",
        {f"FC_mul_mm_{name}": 1 for name in ("ne12", "ne13", "r2", "r3")},
    ),
    Case(
        "flash attention f16", "ggml-metal.metal", "kernel_flash_attn_ext_f16_dk128_dv128",
        {"FC_flash_attn_ext_nsg": 4},
    ),
)  # fmt: skip


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
        repeats = [in_process(cache, STEP, "") for _ in range(5)]
    rows = [
        ("first use on a machine", *map(show, first)),
        ("a new kernel", *(show(min(column)) for column in zip(*new, strict=True))),
        (
            "the same in a new process",
            *(show(min(column)) for column in zip(*repeats, strict=True)),
        ),
    ]
    table(
        "A small kernel (best of 5 processes)",
        ("", "open device", "text to kernel", "first launch"),
        rows,
    )


def file_row(folder: Path, case: Case, include: list[Path], defines: dict[str, int]) -> tuple:
    """A table's row; what a process before it compiled is no help: each starts without a cache."""
    path = folder / case.file
    given = [str(path), case.kernel, list(map(str, include)), defines, case.constants]
    argument = json.dumps(given)
    cold, cached = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            # What is done once on a machine, in both of the languages that texts are compiled as.
            in_process(cache, STEP, "")
            in_process(cache, STEP, "array<int, 1> newer();")
            cold.append(in_process(cache, FILE_STEP, argument))
            cached += [in_process(cache, FILE_STEP, argument) for _ in range(3)]
    kernels, library, kernel, processor = min(cold, key=_wall)
    return (
        case.label,
        f"{path.stat().st_size / 1000:.0f} kB",
        int(kernels),
        show(library),
        show(kernel),
        show(processor),
        show(min(map(_wall, cached))),
    )


def _wall(times: list[float]) -> float:
    return times[1] + times[2]


def real_files(mlx: Path | None, ggml: Path | None) -> None:
    groups = (
        ("MLX", mlx and mlx / "mlx/backend/metal/kernels", MLX_KERNELS, [mlx], {}),
        ("ggml", ggml, GGML_KERNELS, [ggml, ggml and ggml.parent], {"GGML_METAL_HAS_BF16": 1}),
    )
    head = ("", "text", "kernels", "library", "kernel", "processor", "both, cached")
    for name, folder, cases, include, defines in groups:
        rows = []
        for case in cases:
            if folder is None or not (folder / case.file).is_file():
                rows.append((case.label, f"skipped: no folder with {name}'s {case.file}"))
            else:
                rows.append(file_row(folder, case, include, defines))
        table(
            f"One kernel of a file of {name} (best of 3)",
            head,
            [(*row, *("",) * (len(head) - len(row))) for row in rows],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mlx", type=Path, help="a checkout of MLX")
    ggml = os.environ.get("METALLOID_GGML")
    parser.add_argument(
        "--ggml", type=Path, default=ggml and Path(ggml), help="the folder of ggml-metal.metal"
    )
    options = parser.parse_args()
    small_kernel()
    real_files(options.mlx, options.ggml)


if __name__ == "__main__":
    main()
