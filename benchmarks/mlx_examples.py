"""Training programs of mlx-examples, unmodified, on metalloid and on MLX's CPU back end.

    git clone https://github.com/ml-explore/mlx-examples        # 7ddca42f
    pip install "mlx[cpu]"
    python benchmarks/mlx_examples.py mlx-examples [mnist transformer_lm cifar gcn]

Each program runs twice, in processes of its own. Only the module that would download its data is
replaced, by one with random data of the same form. Prints what both report, the largest difference
of their losses or accuracies, and the times of the last reports, in which nothing is compiled.
"""

from __future__ import annotations

import argparse
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import table


class Example(NamedTuple):
    """A program: the module of its data, its arguments, and what its reports say."""

    data: str
    arguments: tuple[str, ...]
    losses: str
    seconds: str


NUMBER = r"([\d.]+)"
EXAMPLES = {
    "mnist": Example("mnist", (), f"accuracy {NUMBER}", rf"Time {NUMBER} \(s\)"),
    "transformer_lm": Example(
        "datasets",
        ("--context_size", "64", "--num_blocks", "2", "--dim", "128", "--num_heads", "4",
         "--batch_size", "8", "--num_iters", "60", "--lr_warmup", "20"),
        f"Train loss {NUMBER}", f"It/sec {NUMBER}",
    ),
    "cifar": Example(
        "dataset", ("--batch_size", "16", "--epochs", "1"),
        rf"Train loss {NUMBER} \| Train acc", rf"Train acc .*Throughput: {NUMBER}",
    ),
    "gcn": Example(
        "datasets", ("--epochs", "60", "--dropout", "0.5"),
        f"Train loss: {NUMBER}", rf"Time: {NUMBER} \(ms\)",
    ),
}  # fmt: skip


def images(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Any:
    """Noisy images of ten classes, and the classes."""
    classes = np.random.default_rng(1).random((10, *shape), np.float32)
    labels = rng.integers(0, 10, count)
    noise = rng.standard_normal((count, *shape), np.float32)
    return (classes[labels] + 4 * noise).astype(np.float32), labels


def data_of_mnist() -> dict[str, Any]:
    """Training and test images as rows."""

    def mnist() -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(0)
        train, test = images(rng, 20000, (784,)), images(rng, 2000, (784,))
        return train[0], train[1].astype(np.uint32), test[0], test[1].astype(np.uint32)

    return {"mnist": mnist}


def data_of_transformer_lm() -> dict[str, Any]:
    """Words that depend on those before them."""

    def load_dataset(name: str) -> Any:
        rng, words = np.random.default_rng(0), 512
        jumps = rng.integers(1, 8, 200_000)
        text = (np.cumsum(jumps) % words).astype(np.uint32)
        return {str(k): k for k in range(words)}, text, text[:20000], text[:20000]

    return {"load_dataset": load_dataset}


class Batches:
    """An iterator of batches that can be restarted."""

    def __init__(self, size: int, count: int, seed: int) -> None:
        self._data = images(np.random.default_rng(seed), size * count, (32, 32, 3))
        self._size, self._count = size, count

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        pixels, labels = self._data
        for k in range(self._count):
            rows = slice(k * self._size, (k + 1) * self._size)
            yield {"image": pixels[rows], "label": labels[rows]}

    def reset(self) -> None:
        """Start with the first batch; iterations do in any case."""


def data_of_cifar() -> dict[str, Any]:
    """Batches of images for training and test."""
    return {"get_cifar10": lambda size: (Batches(size, 21, 0), Batches(size, 2, 2))}


def data_of_gcn() -> dict[str, Any]:
    """A graph with the sizes of Cora, whose edges join nodes of a class."""
    import mlx.core as mx

    def load_data(config: Any) -> Any:
        rng, nodes = np.random.default_rng(0), 2708
        labels = rng.integers(0, 7, nodes)
        topics = np.random.default_rng(1).random((7, 1433)) < 0.02
        features = (rng.random((nodes, 1433)) < 0.01) | (
            topics[labels] & (rng.random((nodes, 1433)) < 0.3)
        )
        a, b = rng.integers(0, nodes, (2, 40000))
        joined = labels[a] == labels[b]
        edges = np.eye(nodes, dtype=np.float32)
        edges[a[joined], b[joined]] = edges[b[joined], a[joined]] = 1
        scale = 1 / np.sqrt(edges.sum(1))
        adjacent = (scale[:, None] * edges * scale).astype(np.float32)
        return mx.array(features.astype(np.float32)), mx.array(labels), mx.array(adjacent)

    def train_val_test_mask() -> Any:
        return mx.arange(140), mx.arange(200, 500), mx.arange(500, 1500)

    return {"load_data": load_data, "train_val_test_mask": train_val_test_mask}


DATA: dict[str, Callable[[], dict[str, Any]]] = {
    "mnist": data_of_mnist, "transformer_lm": data_of_transformer_lm, "cifar": data_of_cifar,
    "gcn": data_of_gcn,
}  # fmt: skip


def run(name: str, folder: Path) -> None:
    """Run a program with generated data, in this process."""
    import mlx.core as mx

    example = EXAMPLES[name]
    module = types.ModuleType(example.data)
    vars(module).update(DATA[name]())
    sys.modules[example.data] = module
    mx.random.seed(0)
    program = folder / name / "main.py"
    sys.path.insert(0, str(program.parent))
    sys.argv[:] = [str(program), *example.arguments]
    runpy.run_path(str(program), run_name="__main__")


def reports(name: str, folder: Path, launcher: list[str]) -> tuple[list[float], list[float]]:
    """The losses and times that a program prints."""
    command = [sys.executable, *launcher, __file__, str(folder), name, "--run"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    example = EXAMPLES[name]
    return tuple(
        [float(number) for number in re.findall(pattern, done.stdout)]
        for pattern in (example.losses, example.seconds)
    )  # type: ignore[return-value]


def compare(name: str, folder: Path) -> list[str]:
    """A row of the table."""
    losses, times = reports(name, folder, ["-m", "metalloid.compat.mlx"])
    expected, others = reports(name, folder, [])
    difference = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    half = len(times) // 2
    own, other = float(np.median(times[half:])), float(np.median(others[half:]))
    is_rate = "sec" in EXAMPLES[name].seconds or "Throughput" in EXAMPLES[name].seconds
    ratio = own / other if is_rate else other / own
    return [name, str(len(losses)), f"{losses[0]:.3f}, {losses[-1]:.3f}", f"{difference:.3f}",
            f"{own:.3f}", f"{other:.3f}", f"{ratio:.2f}"]  # fmt: skip


def main() -> None:
    """Compare all programs."""
    parser = argparse.ArgumentParser(description="Programs of mlx-examples, on metalloid.")
    parser.add_argument("folder", type=Path, help="a checkout of mlx-examples")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(EXAMPLES)}")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(given.names[0], given.folder)
        return
    rows = [compare(name, given.folder) for name in given.names or EXAMPLES]
    table("mlx-examples",
          ["", "reports", "first, last", "largest difference", "metalloid, as printed",
           "MLX, as printed", "times as fast"], rows)  # fmt: skip


if __name__ == "__main__":
    main()
