"""mlx-lm, as it is, on metalloid and on MLX's CPU back end: one program, twice."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("mlx_language_models.py")
MISSING = [name for name in ("mlx", "mlx_lm") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


def run(kind, folder, name, *launcher):
    out = folder / f"{name}.npz"
    command = [sys.executable, *launcher, PROGRAM, folder / name, out, kind]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run(list(map(str, command)), check=True, env=environment)
    return np.load(out)


def rms(difference):
    return np.sqrt(np.mean(np.square(difference)))


@pytest.mark.parametrize("kind", ["llama", "qwen3", "qwen3_moe"])
def test_a_small_model_runs_and_is_fine_tuned_as_on_mlx(kind, tmp_path):
    expected = run(kind, tmp_path, "mlx")
    results = run(kind, tmp_path, "metalloid", "-m", "metalloid.compat.mlx")
    for precision in ("float32", "4 bits, float32"):
        for name in ("logits", "logits, cached"):
            key = f"{kind}, {precision}: {name}"
            np.testing.assert_allclose(results[key], expected[key], atol=1e-4)
        for name in ("tokens", "tokens, batch"):
            key = f"{kind}, {precision}: {name}"
            assert (results[key] == expected[key]).all()
    # Both round to halves, in different operations: no error is larger than MLX's.
    for precision in ("bfloat16", "4 bits"):
        exact = expected[f"{kind}, {'4 bits, ' * (precision == '4 bits')}float32: logits"]
        for name in ("logits", "logits, cached"):
            key = f"{kind}, {precision}: {name}"
            if key in expected:  # MLX's CPU back end multiplies gathered matrices in float32 only
                assert rms(results[key] - exact) < 1.5 * rms(expected[key] - exact)
            assert rms(results[key] - exact) < 0.2 * rms(exact)
    losses, expected_losses = results[f"{kind}: losses"], expected[f"{kind}: losses"]
    assert losses[-1] < 0.2 * losses[0]
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)


def test_the_command_line_loads_a_checkpoint_and_prints_the_same_text(tmp_path):
    code = "import sys; from pathlib import Path; import mlx_language_models as m; "
    code += "m.write_checkpoint('llama', Path(sys.argv[1]))"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env=environment,
                   cwd=PROGRAM.parent)  # fmt: skip
    texts = []
    for launcher in ([], ["-m", "metalloid.compat.mlx"]):
        command = [sys.executable, *launcher, "-m", "mlx_lm", "generate", "--model", str(tmp_path),
                   "--prompt", "hello", "--max-tokens", "12", "--temp", "0",
                   "--ignore-chat-template"]  # fmt: skip
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        texts.append(done.stdout.split("==========")[1])
    assert texts[0].strip()
    assert texts[0] == texts[1]
