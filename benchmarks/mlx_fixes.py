"""Defects in MLX's history: ``python benchmarks/mlx_fixes.py REPOSITORY``.

Each kernel runs as MLX launches it, from the files before a fix and from those of the fix. The
repository is a clone of MLX with its history. tests/sanitizer/test_known_races.py has others.
"""

from __future__ import annotations

import argparse
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import table

import metalloid as mtl

_KERNELS = "mlx/backend/metal/kernels"


class Fix(NamedTuple):
    """A fix of a kernel.

    Attributes
    ----------
    pull : int
        Number of the pull request.
    commit, file, kernel : str
    arguments : tuple
    threads, group_size : int or tuple of int
    """

    pull: int
    commit: str
    file: str
    kernel: str
    arguments: tuple[Any, ...]
    threads: Any
    group_size: Any

    def finding(self, tree: Path) -> str:
        """The finding of the sanitizer in a tree of MLX; empty if there is none."""
        kernels = tree / _KERNELS
        lib = mtl.library(
            path=kernels / self.file, include_dirs=[tree, kernels / "metal_3_1"], device="cpu"
        )
        kernel = lib[self.kernel]
        names = len(kernel.signature.arguments) + len(kernel.signature.threadgroup)
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments[:names]]
        try:
            kernel(*arguments, threads=self.threads, group_size=self.group_size, check=True)
        except mtl.SanitizerError as error:
            first = error.findings[0]
            lines = " and ".join(str(access.line) for access in first.accesses)
            return f"{first.summary}, lines {lines}"
        except mtl.KernelFault as error:
            text, _, _ = str(error).partition(", in thread")
            return text.rpartition("/")[2]
        return ""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def gemv(rows: int, columns: int) -> tuple[Any, ...]:
    return floats(rows, columns), floats(columns), floats(rows), columns, rows, 0, 0


def argmax(count: int) -> tuple[Any, ...]:
    x, strides = np.zeros(count, np.int8), np.zeros(1, np.uint64)
    shape = np.zeros(1, np.int32)
    sizes = [np.array([n], np.uint64) for n in (0, 1, count)]
    memory = mtl.threadgroup_memory(32 * (4 + x.itemsize))
    return x, np.zeros(1, np.uint32), shape, strides, strides, *sizes, memory


def matrix(rows: int, columns: int) -> tuple[np.ndarray, ...]:
    """A matrix of four bits, scales and biases, in groups of 64 columns."""
    random, groups = np.random.default_rng(2), (rows, columns // 64)
    words = random.integers(0, 2**32, (rows, columns // 8), np.uint32)
    return words, floats(*groups), floats(*groups)


def batch(batches: int, rows: int, columns: int, dtype: Any = np.int64) -> tuple[Any, ...]:
    """Shapes and strides of x, and of one matrix for all."""
    shape = np.array([batches, rows, columns], np.int32)
    strides = np.array([rows * columns, columns, 1], dtype)
    return 1, shape, strides, 1, shape, *(np.zeros(3, dtype) for _ in range(3))


def qmv(
    columns: int, outputs: int, batches: int = 1, rows: int = 1, strides: Any = np.int64
) -> tuple[Any, ...]:
    """Arguments of a product of rows with a transposed matrix."""
    x, y = floats(batches, rows, columns), floats(batches, rows, outputs)
    shapes = batch(batches, rows, columns, strides)
    return *matrix(outputs, columns), x, y, columns, outputs, *shapes


def qmm(rows: int, inner: int, columns: int) -> tuple[Any, ...]:
    """Arguments of a product with a matrix."""
    arrays = *matrix(inner, columns), floats(rows, inner), floats(rows, columns)
    return *arrays, inner, columns, rows, *batch(1, rows, inner)


_SIMDGROUPS = (32, 2, 1)  # of matrix-vector products
FIXES = (
    Fix(523, "6d3bee336", "gemv.metal", "gemv_float32_bm4_bn32_tm4_tn4", gemv(16, 126), 128, 128),
    Fix(723, "884b4ed43", "arg_reduce.metal", "argmax_int8", argmax(4096), 1024, 1024),
    Fix(917, "aca758463", "quantized.metal", "qmv_float32_gs_64_b_4", qmv(192, 8),
        _SIMDGROUPS, _SIMDGROUPS),
    Fix(1577, "111fefd5e", "quantized.metal", "qmv_float_gs_64_b_4_batch_0",
        qmv(192, 8, strides=np.uint64),
        _SIMDGROUPS, _SIMDGROUPS),
    Fix(1579, "a4c47b027", "quantized.metal", "qmv_float_gs_64_b_4_batch_0",
        qmv(192, 4, strides=np.uint64),
        _SIMDGROUPS, _SIMDGROUPS),
    Fix(1758, "c7b0300af", "quantized.metal", "qmv_float_gs_64_b_4_batch_1", qmv(192, 8, 2, 2),
        (32, 4, 2), _SIMDGROUPS),
    Fix(2355, "b6eec2026", "quantized.metal", "qmm_n_float_gs_64_b_4_batch_0", qmm(32, 40, 64),
        (64, 2, 2), (32, 2, 2)),
    Fix(3096, "90e38f7b9", "quantized.metal", "affine_qmv_float_gs_64_b_4_batch_0", qmv(192, 6),
        _SIMDGROUPS, _SIMDGROUPS),
)  # fmt: skip


def files_of(repository: Path, revision: str, folder: Path) -> Path:
    """The kernels of a revision."""
    archive = subprocess.run(
        ["git", "-C", str(repository), "archive", revision, _KERNELS],
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for fix in FIXES:
            for when, revision in (("before", f"{fix.commit}~1"), ("after", fix.commit)):
                tree = files_of(options.repository, revision, Path(folder, f"{fix.commit}-{when}"))
                rows.append((f"#{fix.pull}", when, fix.finding(tree) or "nothing"))
    table("Fixes of MLX", ("pull request", "files", "finding"), rows)


if __name__ == "__main__":
    main()
