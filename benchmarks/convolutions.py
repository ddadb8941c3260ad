"""Convolution and pooling in two dimensions against torch: the same work, in turns.

    pip install '.[bench]' torch
    python benchmarks/convolutions.py

Medians in milliseconds. Each has its own order of axes: channels last here, first in torch. Results
are compared before anything is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as peer
from timing import table

import metalloid as mtl
from metalloid.bench.measure import medians

#: Batch, extent of both axes, channels, outputs, extent of the windows, groups.
CONVOLUTIONS = [
    (1, 56, 64, 64, 3, 1), (8, 56, 64, 64, 3, 1), (8, 14, 256, 256, 3, 1), (8, 28, 128, 128, 1, 1),
    (8, 224, 3, 64, 7, 1), (1, 512, 1, 1, 5, 1), (4, 56, 64, 3, 3, 1), (8, 28, 64, 64, 3, 4),
    (8, 56, 96, 96, 3, 96),
]  # fmt: skip
#: Extent of the windows, and steps.
POOLS = [(2, 2), (3, 2), (7, 7)]

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _given(x: np.ndarray) -> tuple[mtl.Array, torch.Tensor]:
    own = mtl.asarray(x)
    mtl.eval(own)
    return own, torch.from_numpy(np.moveaxis(x, -1, 1).copy())


def works() -> Iterator[tuple[str, Pair]]:
    """Convolutions to time, ours and torch's."""
    for batch, extent, channels, outputs, size, groups in CONVOLUTIONS:
        x, y = _given(_normal(batch, extent, extent, channels))
        w, v = _given(_normal(outputs, size, size, channels // groups))
        name = f"{batch} x {extent}^2 x {channels}, {outputs} of {size}^2, groups {groups}"
        yield (
            name,
            (
                lambda x=x, w=w, p=size // 2, g=groups: mtl.conv2d(x, w, padding=p, groups=g),
                lambda y=y, v=v, p=size // 2, g=groups: peer.conv2d(y, v, padding=p, groups=g),
            ),
        )
    x, y = _given(_normal(8, 112, 112, 64))
    for size, step in POOLS:
        yield (
            f"8 x 112^2 x 64, largest of {size}^2, steps {step}",
            (
                lambda s=size, k=step: mtl.max_pool(x, s, k),
                lambda s=size, k=step: peer.max_pool2d(y, s, k),
            ),
        )


def main() -> None:
    rows = []
    for name, (own, theirs) in works():
        exact = np.moveaxis(theirs().numpy(), 1, -1)
        np.testing.assert_allclose(np.asarray(own()), exact, 2e-4, 2e-5 * np.abs(exact).max())
        runs = [lambda own=own: mtl.eval(own()), theirs]
        ours, torchs = medians(runs, 9, pause=0.05, warm=0.05)
        rows.append([name, f"{ours * 1e3:.2f}", f"{torchs * 1e3:.2f}", f"{torchs / ours:.2f}"])
    head = ["", "metalloid", "torch", "torch / metalloid"]
    table(f"{os.cpu_count()} processors; milliseconds", head, rows)


if __name__ == "__main__":
    main()
