"""Tokens and prompts of transformers, compared with the time to read the weights and with MLX.

Run it by ``python benchmarks/transformer.py``; ``--layers`` chooses how many layers of the model
are measured (a model has more of the same), ``--mlx`` adds MLX in the same run, ``--launches``
lists the launches of a token, each by its own events, and ``--no-prompt`` leaves out prompts.

Weights are random, in the shapes of Llama 3.2 1B and Qwen3 0.6B: as bfloat16, or in groups of 64 of
4 bits. A token meets a cache of 128 keys; the output layer is part of it. *Reading* is the time of
a sum over as many bytes as the weights have. A prompt has 512 tokens; *products* are those of
its matrices in bfloat16 alone. ``METALLOID_DEVICE`` chooses the device.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from timing import alternating, best, installed, show, table

import metalloid as mtl
from metalloid import nn


class Shape(NamedTuple):
    """Extents of a model."""

    hidden: int
    heads: int
    heads_of_keys: int
    features: int
    inner: int
    vocabulary: int

    def matrices(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of the matrices of a layer."""
        keys = self.heads_of_keys * self.features
        return {
            "q": (self.heads * self.features, self.hidden),
            "k": (keys, self.hidden),
            "v": (keys, self.hidden),
            "o": (self.hidden, self.heads * self.features),
            "gate": (self.inner, self.hidden),
            "up": (self.inner, self.hidden),
            "down": (self.hidden, self.inner),
        }


MODELS = {
    "Llama 3.2 1B": Shape(2048, 32, 8, 64, 8192, 128256),
    "Qwen3 0.6B": Shape(1024, 16, 8, 128, 3072, 151936),
}
CACHED, PROMPT, GROUP = 128, 512, 64


def complete(*arrays: Any) -> None:
    """Evaluate arrays, and wait until the device has."""
    mtl.eval(*arrays)
    arrays[0].device.synchronize()


class Metalloid:
    """The functions of a model."""

    name = "metalloid"
    eval, concat = staticmethod(complete), staticmethod(mtl.concat)
    compile, permute = staticmethod(mtl.compile), staticmethod(mtl.permute_dims)
    rms_norm, rope, silu = staticmethod(nn.rms_norm), staticmethod(nn.rope), staticmethod(nn.silu)
    attention = staticmethod(nn.scaled_dot_product_attention)
    quantized_matmul = staticmethod(nn.quantized_matmul)

    @staticmethod
    def array(x: np.ndarray, is_half: bool) -> Any:
        """An array on the device, as bfloat16 or as it is."""
        array = mtl.asarray(x)
        return array.astype(mtl.bfloat16) if is_half else array


class MLX:
    """The same of MLX, on the CPU."""

    name = "mlx"

    def __init__(self, mx: Any) -> None:
        mx.set_default_device(mx.cpu)
        self.mx, self.eval, self.concat, self.compile = mx, mx.eval, mx.concatenate, mx.compile
        self.permute = mx.transpose
        self.rms_norm, self.rope = mx.fast.rms_norm, mx.fast.rope
        self.attention = mx.fast.scaled_dot_product_attention
        self.quantized_matmul = mx.quantized_matmul

    def silu(self, x: Any) -> Any:
        """As `nn.silu`."""
        return x * self.mx.sigmoid(x)

    def array(self, x: np.ndarray, is_half: bool) -> Any:
        """As that of `Metalloid`."""
        array = self.mx.array(x)
        return array.astype(self.mx.bfloat16) if is_half else array


class Model:
    """Layers of a transformer, with an output layer."""

    def __init__(self, ops: Any, shape: Shape, layers: int, bits: int) -> None:
        self.ops, self.shape, self.bits = ops, shape, bits
        self.rng = np.random.default_rng(0)
        self.nbytes = 0
        self.layers = [
            {name: self.matrix(*size) for name, size in shape.matrices().items()}
            for _ in range(layers)
        ]
        self.output = self.matrix(shape.vocabulary, shape.hidden)
        self.norm = ops.array(np.ones(shape.hidden, np.float32), True)
        cache = (1, shape.heads_of_keys, CACHED, shape.features)
        self.cache = ops.array(self.rng.standard_normal(cache, np.float32), True)
        ops.eval(self.norm, self.cache)

    def matrix(self, rows: int, columns: int) -> tuple[Any, ...]:
        """A random matrix: words, scales and biases, or itself."""
        if self.bits == 16:
            block = self.rng.standard_normal((min(rows, 1024), columns), np.float32) / 32
            parts = [np.tile(block, (-(-rows // len(block)), 1))[:rows]]
        else:
            words = self.rng.integers(
                2**32, size=(rows, columns * self.bits // 32), dtype=np.uint32
            )
            scales = self.rng.random((rows, columns // GROUP), np.float32) / 256
            parts = [words, scales, -8 * scales]
        arrays = tuple(self.ops.array(x, x.dtype == np.float32) for x in parts)
        self.ops.eval(*arrays)
        self.nbytes += sum(array.nbytes for array in arrays)
        return arrays

    def product(self, x: Any, weights: tuple[Any, ...]) -> Any:
        """Multiply with the transpose of a matrix."""
        if self.bits == 16:
            return x @ weights[0].T
        return self.ops.quantized_matmul(x, *weights, group_size=GROUP, bits=self.bits)

    def layer(self, x: Any, weights: dict[str, tuple[Any, ...]], offset: int) -> Any:
        """Attention and a gated network, each added to its operand."""
        ops, shape, length = self.ops, self.shape, x.shape[1]
        hidden = ops.rms_norm(x, self.norm, 1e-5)

        def heads(name: str, count: int) -> Any:
            product = self.product(hidden, weights[name])
            rows = product.reshape((1, length, count, shape.features))
            return ops.permute(rows, (0, 2, 1, 3))

        options = {"traditional": False, "base": 5e5, "scale": 1.0, "offset": offset}
        q = ops.rope(heads("q", shape.heads), shape.features, **options)
        k = ops.rope(heads("k", shape.heads_of_keys), shape.features, **options)
        v = heads("v", shape.heads_of_keys)
        if offset:
            k, v = ops.concat([self.cache, k], 2), ops.concat([self.cache, v], 2)
        mask = "causal" if length > 1 else None
        met = ops.attention(q, k, v, scale=shape.features**-0.5, mask=mask)
        rows = ops.permute(met, (0, 2, 1, 3)).reshape((1, length, -1))
        x = x + self.product(rows, weights["o"])
        hidden = ops.rms_norm(x, self.norm, 1e-5)
        gate = ops.silu(self.product(hidden, weights["gate"]))
        return x + self.product(gate * self.product(hidden, weights["up"]), weights["down"])

    def token(self) -> Callable[[], object]:
        """A call that computes the scores of the next token."""

        def scores(x: Any) -> Any:
            for weights in self.layers:
                x = self.layer(x, weights, CACHED)
            return self.product(self.ops.rms_norm(x, self.norm, 1e-5), self.output)

        return self.called(scores, 1)

    def prompt(self) -> Callable[[], object]:
        """A call that computes one layer of a prompt."""
        return self.called(lambda x: self.layer(x, self.layers[0], 0), PROMPT)

    def called(self, function: Callable[[Any], Any], length: int) -> Callable[[], object]:
        """A call of a compiled function of a random input."""
        x = self.rng.standard_normal((1, length, self.shape.hidden), np.float32)
        compiled, operand = self.ops.compile(function), self.ops.array(x, True)
        return lambda: self.ops.eval(compiled(operand))


def reading(nbytes: int) -> Callable[[], object]:
    """A call that reads so many bytes."""
    x = mtl.zeros(nbytes // 4) + mtl.asarray(1.0)
    mtl.eval(x)
    return lambda: complete(x.sum())


def products(shape: Shape) -> Callable[[], object]:
    """A call of the products of a layer of a prompt, in bfloat16."""
    pairs = []
    for k, (rows, columns) in enumerate(shape.matrices().values()):
        x = mtl.ones((PROMPT, columns), dtype=mtl.bfloat16)
        w = mtl.full((rows, columns), 2.0**-k)  # equal products would be computed once
        pairs.append((x, w.astype(mtl.bfloat16)))
    mtl.eval(*(array for pair in pairs for array in pair))
    return lambda: complete(*(x @ w.T for x, w in pairs))


def show_launches(title: str, token: Callable[[], object], repeat: int) -> None:
    """Print the least times of a token's launches, those of a kernel and a grid together."""
    device = mtl.default_device().name
    times: dict[tuple[Any, ...], list[float]] = {}
    for _ in range(repeat):
        with mtl.profile(counts=False) as profile:
            token()
        now: dict[tuple[Any, ...], list[float]] = {}
        for each in (launch for launch in profile.launches if launch.device == device):
            now.setdefault((each.kernel, each.threads, each.group), []).append(each.device_seconds)
        for key, seconds in now.items():
            times[key] = [*map(min, seconds, times.get(key, seconds))]
    rows = [
        [kernel, "x".join(map(str, threads)), "x".join(map(str, group or ())), len(seconds),
         show(sum(seconds) / len(seconds)), show(sum(seconds))]
        for (kernel, threads, group), seconds in sorted(times.items(), key=lambda x: -sum(x[1]))
    ]  # fmt: skip
    every = [x for seconds in times.values() for x in seconds]
    rows.append(["all", "", "", len(every), "", show(sum(every))])
    table(title, ["kernel", "threads", "threadgroup", "launches", "one", "all"], rows)


def measure(name: str, bits: int, others: Sequence[Any], given: argparse.Namespace) -> None:
    """Print the times of a model."""
    shape, layers, repeat = MODELS[name], given.layers, given.repeat
    model = Model(Metalloid(), shape, layers, bits)
    title = f"{name}, {bits} bits, {layers} layers and the output layer"
    call = model.token()
    call()  # compiles
    token, read = alternating([call, reading(model.nbytes)], repeat)
    size = model.nbytes / 1e9
    rows = [
        ["metalloid", show(token), f"{size / token:.1f}", f"{read / token:.2f}"],
        ["reading", show(read), f"{size / read:.1f}", "1"],
    ]
    head = ["", "token", "GB/s", "of reading"]
    if not given.no_prompt:
        prompt = model.prompt()
        prompt()
        layer, alone = alternating([prompt, products(shape)], max(repeat // 4, 2))
        rows[0] += [show(layer), f"{alone / layer:.2f}"]
        rows[1] = ["reading, products", *rows[1][1:], show(alone), "1"]
        head += [f"layer of {PROMPT}", "of products"]
    for ops in others:
        other = Model(ops, shape, layers, bits)
        slow = best(other.token(), 2)
        row = [ops.name, show(slow), f"{size / slow:.1f}", f"{read / slow:.2f}"]
        if not given.no_prompt:
            slow_layer = best(other.prompt(), 1)
            row += [show(slow_layer), f"{alone / slow_layer:.2f}"]
        rows.append(row)
    table(f"{title}, {size:.2f} GB", head, rows)
    if given.launches:
        show_launches(f"{title}: launches of a token", call, repeat)


def main() -> None:
    """Measure all models."""
    parser = argparse.ArgumentParser(description="Tokens and prompts of transformers.")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--mlx", action="store_true", help="measure MLX on the CPU, too")
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--launches", action="store_true", help="list the launches of a token")
    parser.add_argument("--no-prompt", action="store_true", help="leave out prompts")
    parser.add_argument("--bits", type=int, choices=(4, 8, 16), action="append")
    given = parser.parse_args()
    mx = installed("mlx.core") if given.mlx else None
    for name in given.model or MODELS:
        for bits in given.bits or (4, 16):
            measure(name, bits, [MLX(mx)] if mx else [], given)


if __name__ == "__main__":
    main()
