"""What vector code is worth, engine against engine: ``python benchmarks/cpu.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from timing import alternating, show, table

import metalloid as mtl

N = 1_000_000
SIDE = 512
#: Name of the kernel, arguments, threads, threads per threadgroup.
Case = tuple[str, list[Any], Any, Any]


def cases() -> list[Case]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    square = (SIDE, SIDE)
    return [
        ("saxpy", [floats(N), floats(N), 0.5], N, None),
        ("exp_sin", [floats(N), floats(N)], N, None),
        ("float4s", [floats(N // 4, 4), floats(N // 4, 4)], N // 4, None),
        ("julia", [np.zeros(square, np.int32), SIDE, (-0.8, 0.156)], square, None),
        ("collatz", [np.zeros(N // 10, np.int32)], N // 10, None),
        ("stencil", [floats(*square), floats(*square), SIDE], square, None),
        ("matmul", [floats(256, 256) for _ in range(3)] + [256], (256, 256), None),
        ("tiled_matmul", [floats(256, 256) for _ in range(3)] + [256], (256, 256), (16, 16)),
        ("softmax", [floats(256, 1024), floats(256, 1024), 1024], 256 * 256, 256),
    ]


def main() -> None:
    print(mtl.default_device())
    libraries = {}
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            libraries[engine] = lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
            for name in lib:
                lib[name]  # compiled by the engine of this scope
    rows = []
    for name, arguments, threads, group in cases():
        slow, fast = alternating(
            [
                lambda lib=lib, name=name, given=arguments, t=threads, g=group: lib[name](
                    *given, threads=t, group_size=g
                )
                for lib in libraries.values()
            ]
        )
        engine = libraries["simd"][name].engine
        rows.append((name, show(slow), show(fast), f"{slow / fast:.1f}", engine))
    table("Kernels", ("", "reference", "simd", "ratio", "engine"), rows)


if __name__ == "__main__":
    main()
