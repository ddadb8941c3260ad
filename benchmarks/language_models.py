"""Tokens per second of language models by mlx-lm, on metalloid and MLX, and by llama.cpp.

    pip install mlx-lm "mlx[cpu]"
    python benchmarks/language_models.py [--layers 16] [--llama-cpp PROGRAM]

mlx-lm is as it is: its models, and ``mlx_lm.generate.generate_step``, with random weights in the
shapes of Llama 3.2 1B and Qwen3 0.6B, as bfloat16 or in groups of 64 of 4 bits. Each row is a
process of its own. Tokens follow a prompt of 8; the first ones, for which kernels are compiled, are
left out. *Reading* is the time of a sum over as many bytes as the weights have. Ratios are those of
the fastest tokens, as other processes may use the machine.

``PROGRAM`` is built from cpu_rivals/llama_tokens.c. It runs the Llama on the same number of layers,
whose file this script writes: bfloat16, or q4_0, which has 4.5 bits a weight as MLX's 4 bits do.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import best, show, table
from transformer import GROUP, MODELS, Shape, reading

KINDS = {"Llama 3.2 1B": "llama", "Qwen3 0.6B": "qwen3"}
PROMPT = (1, 5, 9, 14, 3, 77, 20, 31)
WARM = 4  # tokens that are left out


def configuration(name: str, layers: int) -> dict[str, Any]:
    """The configuration that mlx-lm reads."""
    shape = MODELS[name]
    return {
        "model_type": KINDS[name], "hidden_size": shape.hidden, "num_hidden_layers": layers,
        "intermediate_size": shape.inner, "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads_of_keys, "head_dim": shape.features,
        "rms_norm_eps": 1e-5, "vocab_size": shape.vocabulary, "rope_theta": 5e5,
        "tie_word_embeddings": True, "max_position_embeddings": 4096,
    }  # fmt: skip


def random_matrix(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers, which repeat, as large ones take long to draw."""
    numbers = rng.standard_normal(1 << 18, np.float32) * np.float32(shape[-1] ** -0.5)
    return np.resize(numbers, shape)


def generate(name: str, layers: int, bits: int, count: int) -> None:
    """Print the bytes of the weights, the times of tokens and the tokens, by mlx-lm."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_flatten, tree_unflatten
    from mlx_lm.generate import generate_step

    config = configuration(name, layers)
    module = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = module.Model(module.ModelArgs.from_dict(config))
    rng, weights = np.random.default_rng(3), []
    for key, value in sorted(tree_flatten(model.parameters())):
        ones = np.ones(value.shape, np.float32)
        new = ones if "norm" in key else random_matrix(rng, value.shape)
        weights.append((key, mx.array(new).astype(mx.bfloat16)))
    model.update(tree_unflatten(weights))
    if bits < 16:
        nn.quantize(model, group_size=GROUP, bits=bits)
    mx.eval(model.parameters())
    nbytes = sum(value.nbytes for _, value in tree_flatten(model.parameters()))
    times, tokens, last = [], [], time.perf_counter()
    for token, _ in generate_step(mx.array(PROMPT), model, max_tokens=count):
        tokens.append(int(token))
        times.append(time.perf_counter() - last)
        last = time.perf_counter()
    print(json.dumps([nbytes, times, tokens]))


def blocks(rng: np.random.Generator, shape: tuple[int, ...], bits: int) -> bytes:
    """A matrix in ggml's types: bfloat16, or q4_0, where 32 weights share a scale."""
    if bits == 16:
        words = random_matrix(rng, shape).view(np.uint32) >> 16
        return words.astype(np.uint16).tobytes()
    rows = np.resize(rng.integers(0, 256, (1 << 12, 18), np.uint8), (shape[0] * shape[1] // 32, 18))
    scale = np.float16(0.2 / np.sqrt(shape[1]))
    rows[:, :2] = np.frombuffer(scale.tobytes(), np.uint8)
    return rows.tobytes()


def matrices_of(shape: Shape, layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names that llama.cpp gives to the weights of a llama, and their extents."""
    names = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate",
             "up": "ffn_up", "down": "ffn_down"}  # fmt: skip
    yield "token_embd.weight", (shape.vocabulary, shape.hidden)
    yield "output_norm.weight", (shape.hidden,)
    for k in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            yield f"blk.{k}.{norm}.weight", (shape.hidden,)
        for name, extents in shape.matrices().items():
            yield f"blk.{k}.{names[name]}.weight", extents


def write_gguf(path: Path, shape: Shape, layers: int, bits: int) -> None:
    """Write a llama of random weights, without a vocabulary, as llama.cpp reads it."""
    rng = np.random.default_rng(3)

    def word(value: int, size: int = 4) -> bytes:
        return value.to_bytes(size, "little")

    def text(value: str) -> bytes:
        return word(len(value), 8) + value.encode()

    numbers: dict[str, int | float | str] = {
        "general.architecture": "llama", "tokenizer.ggml.model": "no_vocab",
        "llama.context_length": 4096, "llama.block_count": layers,
        "llama.embedding_length": shape.hidden, "llama.feed_forward_length": shape.inner,
        "llama.attention.head_count": shape.heads, "llama.vocab_size": shape.vocabulary,
        "llama.attention.head_count_kv": shape.heads_of_keys, "llama.rope.freq_base": 5e5,
        "llama.rope.dimension_count": shape.features,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    head, data = b"", []
    for key, value in numbers.items():
        if isinstance(value, str):
            head += text(key) + word(8) + text(value)
        elif isinstance(value, float):
            head += text(key) + word(6) + np.float32(value).tobytes()
        else:
            head += text(key) + word(4) + word(value)
    offset = 0
    tensors = list(matrices_of(shape, layers))
    for name, extents in tensors:
        is_norm = len(extents) == 1
        content = np.ones(extents, np.float32).tobytes() if is_norm else blocks(rng, extents, bits)
        kind = 0 if is_norm else 30 if bits == 16 else 2
        head += text(name) + word(len(extents))
        head += b"".join(word(extent, 8) for extent in reversed(extents))
        head += word(kind) + word(offset, 8)
        data.append(content + bytes(-len(content) % 32))
        offset += len(data[-1])
    head = b"GGUF" + word(3) + word(len(tensors), 8) + word(len(numbers), 8) + head
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % 32))
        file.writelines(data)


def measure(name: str, bits: int, given: argparse.Namespace) -> None:
    """Print the table of a model."""
    arguments = ["--layers", str(given.layers), "--model", name, "--bits", str(bits), "--run"]

    def run(launcher: list[str], count: int) -> tuple[int, list[float], list[int]]:
        command = [sys.executable, *launcher, __file__, *arguments, "--tokens", str(count)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        nbytes, times, tokens = json.loads(done.stdout.splitlines()[-1])
        return nbytes, times, tokens

    nbytes, times, tokens = run(["-m", "metalloid.compat.mlx"], given.tokens)
    read, own = best(reading(nbytes), 7), min(times[WARM:])

    def row(program: str, times: list[float]) -> list[str]:
        least = min(times)
        return [program, show(least), show(float(np.median(times))), f"{1 / least:.1f}",
                f"{read / least:.2f}", f"{least / own:.2f}"]  # fmt: skip

    rows = [row("mlx-lm on metalloid", times[WARM:]), row("reading the weights", [read])]
    if not given.without_mlx:
        _, others, expected = run([], max(WARM + 3, given.tokens // 8))
        rows.append(row("mlx-lm on MLX's CPU back end", others[WARM:]))
        same = sum(a == b for a, b in zip(tokens, expected, strict=False))
        rows[-1].append(f"{same} of {len(expected)} tokens are the same")
    if given.llama_cpp and KINDS[name] == "llama":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            write_gguf(path, MODELS[name], given.layers, bits)
            command = [given.llama_cpp, str(path), str(given.tokens)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(row("llama.cpp", [float(x) for x in done.stdout.split()][WARM:]))
    table(
        f"{name}, {bits} bits, {given.layers} layers and the output layer, {nbytes / 1e9:.3f} GB",
        ["", "token", "median", "tokens/s", "of reading", "over metalloid's", ""],
        [[*cells, ""][:7] for cells in rows],
    )


def main() -> None:
    """Measure all models."""
    parser = argparse.ArgumentParser(description="Tokens of language models by mlx-lm.")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--bits", type=int, choices=(4, 8, 16), action="append")
    parser.add_argument("--without-mlx", action="store_true", help="do not run MLX's back end")
    parser.add_argument("--llama-cpp", help="the program of cpu_rivals/llama_tokens.c")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        generate(given.model[0], given.layers, given.bits[0], given.tokens)
        return
    for name in given.model or MODELS:
        for bits in given.bits or (4, 16):
            measure(name, bits, given)


if __name__ == "__main__":
    main()
