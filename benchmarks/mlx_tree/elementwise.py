"""Launches of MLX's kernels that treat each element by itself: unary, binary, ternary and copy.

Names begin with a form. Contiguous operands: ``v`` vector and ``s`` scalar, one letter an operand;
an ``n`` after them means several elements a thread, a ``2`` a grid of two dimensions, which MLX
takes where 32 bits do not count the elements. General operands, with strides: ``g`` and their
rank (``gg``: the result has strides, too), ``gn`` and elements a thread for any rank; ``large`` has
64-bit indices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import ceildiv, element_strides

#: Bytes that a thread of a contiguous kernel handles: WorkPerThread of utils.h.
_BYTES_PER_THREAD = 8
_MAX_THREADS = 1024
#: An array of each rank; 4 stands for any.
SHAPES = {1: (307,), 2: (11, 29), 3: (3, 11, 9), 4: (2, 3, 5, 11)}

_NAME = re.compile(r"(gg?)(n?)(\d)(large)?(_dynamic)?_|([sv]+)(n|2)?_")


def per_thread(dtype) -> int:
    """Elements that a thread of a contiguous kernel handles, by the type that counts."""
    return _BYTES_PER_THREAD // np.dtype(dtype).itemsize


class Form(NamedTuple):
    """A kernel's form, read from the start of its name."""

    general: bool
    #: General: whether the result has strides, and offsets are read on the device.
    strided_result: bool = False
    dynamic: bool = False
    #: General: axes; 0 if the kernel takes any number.
    rank: int = 0
    #: Elements a thread; 0 if the type decides.
    work: int = 1
    #: Contiguous: which operands are vectors, and the dimensions of the grid.
    vectors: str = ""
    dimensions: int = 1


def form_of(name: str) -> tuple[Form, str]:
    """The form of a kernel and the rest of its name."""
    match = _NAME.match(name)
    assert match, f"no form of an elementwise kernel: {name}"
    rest = name[match.end() :]
    general, any_rank, digit, _, dynamic, vectors, suffix = match.groups()
    if general:
        rank, work = (0, int(digit)) if any_rank else (int(digit), 1)
        return Form(True, general == "gg", bool(dynamic), rank, work), rest
    dimensions = 2 if suffix == "2" else 1
    return Form(False, work=0 if suffix else 1, vectors=vectors, dimensions=dimensions), rest


def two_dimensional(threads: int, work: int) -> tuple[int, int]:
    """A grid of three rows. Kernels that do one element a thread check no bounds."""
    rows = 3 if work > 1 or threads % 3 == 0 else 1
    return ceildiv(threads, rows), rows


def launch_contiguous(
    kernel: mtl.Kernel, arrays: Sequence[np.ndarray], size: int, work: int, dimensions: int = 1
) -> None:
    """Launch a kernel over `size` elements; `arrays` are operands and results."""
    threads = ceildiv(size, work)
    grid = two_dimensional(threads, work) if dimensions == 2 else (threads,)
    kernel(*arrays, size, threads=grid, group_size=min(threads, _MAX_THREADS))


def block_dims(grid: Sequence[int]) -> tuple[int, ...]:
    """MLX's get_block_dims: powers of two, 1024 threads at most, doubled in turn."""
    powers = [0, 0, 0]
    while True:
        before = sum(powers)
        for axis, extent in enumerate(grid):
            if sum(powers) < 10 and extent >= 2 << powers[axis]:
                powers[axis] += 1
        if sum(powers) in (before, 10):
            return tuple(1 << power for power in powers)


def launch_general(
    kernel: mtl.Kernel,
    arrays: Sequence[np.ndarray],
    shape: Sequence[int],
    strides: Sequence[np.ndarray],
    rank: int = 0,
    work: int = 1,
    more: Sequence[int] = (),
) -> None:
    """Launch a kernel whose operands have `strides`, in elements; `rank` 0 if it takes any."""
    grid = [*[*reversed(shape), 1][:2], int(np.prod(shape[:-2]))]
    if rank == 1:
        arguments: tuple[object, ...] = tuple(int(s[0]) for s in strides)
    elif rank:
        arguments = tuple(strides)
    else:
        arguments = (np.array(shape, np.int32), *strides, len(shape))
        grid[0] = ceildiv(grid[0], work)
    kernel(*arrays, *arguments, *more, threads=tuple(grid), group_size=block_dims(grid))


def strided(pool: np.ndarray, shape: tuple[int, ...], layout: int) -> tuple[np.ndarray, ...]:
    """An array in memory, filled from `pool`, and a view of it that starts where it does."""
    if layout == 0:
        base = np.resize(pool, shape[::-1])
        return base, base.transpose()
    if layout == 1:  # every other element, the same ones for all outer axes
        base = np.resize(pool, 2 * shape[-1])
        return base, np.broadcast_to(base[::2], shape)
    base = np.resize(pool, (*shape[:-1], shape[-1] + 3))
    return base, base[..., :-3]


def run(
    kernel: mtl.Kernel, form: Form, pools: Sequence[np.ndarray], results: Sequence, counted
) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Launch a kernel in its form, on operands filled from `pools`.

    Parameters
    ----------
    kernel : Kernel
    form : Form
    pools : sequence of ndarray
        Values for each operand.
    results : sequence of dtype
        Types of the results.
    counted : dtype
        The type whose size decides how many elements a thread handles.

    Returns
    -------
    list
        ``(operands, results)`` of each launch.
    """
    work = form.work or per_thread(counted)
    if form.general:
        shape = SHAPES[form.rank or 4]
        pairs = [strided(pool, shape, layout) for layout, pool in enumerate(pools)]
        outs = [np.empty(shape, dtype) for dtype in results]
        strides = [element_strides(view) for _, view in pairs]
        bases = [base.reshape(-1) for base, _ in pairs]
        launch_general(kernel, [*bases, *outs], shape, strides, form.rank, work)
        return [([view for _, view in pairs], outs)]
    scalars_only = form.vectors == "ss"
    launches = []
    for size in (1,) if scalars_only else (1, len(pools[0])):
        operands = [
            pool[:size] if letter == "v" else pool[size // 2 : size // 2 + 1].copy()
            for pool, letter in zip(pools, form.vectors, strict=True)
        ]
        outs = [np.empty(size, dtype) for dtype in results]
        if scalars_only:
            kernel(*operands, *outs, threads=1)
        else:
            launch_contiguous(kernel, [*operands, *outs], size, work, form.dimensions)
        launches.append((operands, outs))
    return launches
