"""A program for MLX and mlx-lm: small language models with random weights, run and fine-tuned.

    python mlx_language_models.py CHECKPOINTS RESULTS.npz [llama qwen3 qwen3_moe]

Writes logits, tokens and losses; and in the folder CHECKPOINTS models that `mlx_lm.generate` loads.
"""

import importlib
import json
import sys
import time
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.generate import BatchGenerator, generate_step
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tuner.trainer import TrainingArgs, train
from mlx_lm.tuner.utils import linear_to_lora_layers

CONFIG = {
    "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-5, "vocab_size": 96,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "max_position_embeddings": 512,
}  # fmt: skip
EXPERTS = {
    "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "moe_intermediate_size": 64, "norm_topk_prob": True,
}  # fmt: skip
PROMPT = [1, 5, 9, 14, 3, 77, 20, 31, 2, 60, 8]
TOKENS, STEPS = 16, 50
PRECISIONS = ("float32", "bfloat16", "4 bits", "4 bits, float32")
IS_METALLOID = mx.array.__module__.startswith("metalloid")


def config_of(kind):
    return {"model_type": kind, **CONFIG, **(EXPERTS if kind.endswith("_moe") else {})}


def model_of(kind, dtype):
    """A model with random weights that do not depend on the generator of MLX."""
    module = importlib.import_module(f"mlx_lm.models.{kind}")
    model = module.Model(module.ModelArgs.from_dict(config_of(kind)))
    rng = np.random.default_rng(3)
    weights = []
    for name, value in sorted(tree_flatten(model.parameters())):
        if "norm" in name:
            new = rng.uniform(0.5, 1.5, value.shape)
        else:
            new = rng.standard_normal(value.shape) / np.sqrt(value.shape[-1]) * 1.5
        weights.append((name, mx.array(new.astype(np.float32)).astype(dtype)))
    model.update(tree_unflatten(weights))
    mx.eval(model.parameters())
    return model


def greedy(model):
    """Tokens with a cache, one prompt."""
    steps = generate_step(mx.array(PROMPT), model, max_tokens=TOKENS, prefill_step_size=4)
    return [int(token) for token, _ in steps]


def greedy_batch(model):
    """Tokens of prompts with different lengths, in one batch."""
    generator = BatchGenerator(model, max_tokens=TOKENS, stop_tokens=[])
    order = generator.insert([PROMPT, PROMPT[:4], PROMPT[2:9]])
    tokens = {number: [] for number in order}
    while responses := generator.next_generated():
        for response in responses:
            tokens[response.uid].append(response.token)
    generator.close()
    return [tokens[number] for number in order]


def losses_of_fine_tuning(model, folder):
    """Losses of LoRA's steps."""
    mx.random.seed(0)
    np.random.seed(0)
    model.freeze()
    linear_to_lora_layers(model, 2, {"rank": 4, "scale": 2.0, "dropout": 0.0})
    rng = np.random.default_rng(4)
    start = np.repeat(rng.integers(0, 64, 4), 2)
    data = [(((at + 3 * np.arange(24)) % 96).tolist(), 0) for at in start]
    losses = []

    class Report:
        def on_train_loss_report(self, info):
            losses.append(info["train_loss"])

        def on_val_loss_report(self, info):
            pass

    train(
        model, optim.Adam(learning_rate=1e-3), data,
        args=TrainingArgs(batch_size=4, iters=STEPS, steps_per_report=1, max_seq_length=32,
                          steps_per_save=1000, adapter_file=str(folder / "adapters.safetensors")),
        training_callback=Report(),
    )  # fmt: skip
    return losses


def write_checkpoint(kind, folder):
    """A folder as of a model hub: configuration, weights, a tokenizer of characters."""
    folder.mkdir(parents=True, exist_ok=True)
    model = model_of(kind, mx.float32)
    (folder / "config.json").write_text(json.dumps(config_of(kind)))
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())),
                        metadata={"format": "mlx"})  # fmt: skip
    characters = {chr(32 + k): k for k in range(95)} | {"<eos>": 95}
    tokenizer = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "truncation": None, "padding": None, "decoder": {"type": "Fuse"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated",
                          "invert": False},
        "model": {"type": "WordLevel", "vocab": characters, "unk_token": " "},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"})
    )


def main(folder, out, kinds):
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for kind in kinds:
        has_halves = IS_METALLOID or not kind.endswith("_moe")  # gather_mm of MLX's CPU
        for precision in PRECISIONS:
            if precision == "bfloat16" and not has_halves:
                continue
            start = time.perf_counter()
            model = model_of(kind, mx.float32 if precision == "float32" else mx.bfloat16)
            if precision.startswith("4 bits"):
                nn.quantize(model, group_size=32, bits=4)
            if precision == "4 bits, float32":  # the same words, scales and norms
                model.set_dtype(mx.float32)
            batch = mx.array([PROMPT, PROMPT[::-1]])
            at_once = model(batch)
            cache = make_prompt_cache(model)
            parts = [model(batch[:, :4], cache=cache)]
            parts += [model(batch[:, k : k + 1], cache=cache) for k in range(4, len(PROMPT))]
            name = f"{kind}, {precision}"
            results[f"{name}: logits"] = np.array(at_once.astype(mx.float32))
            cached = mx.concatenate(parts, axis=1).astype(mx.float32)
            results[f"{name}: logits, cached"] = np.array(cached)
            results[f"{name}: tokens"] = np.array(greedy(model))
            results[f"{name}: tokens, batch"] = np.array(greedy_batch(model))
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        start = time.perf_counter()
        model = model_of(kind, mx.float32)
        results[f"{kind}: losses"] = np.array(losses_of_fine_tuning(model, folder))
        print(f"{kind}, LoRA: {time.perf_counter() - start:.1f} s", flush=True)
        write_checkpoint(kind, folder / kind)
    np.savez(out, **results)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] or ["llama", "qwen3", "qwen3_moe"])
