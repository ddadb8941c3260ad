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


def run(folder, name, *launcher):
    out = folder / f"{name}.npz"
    command = [sys.executable, *launcher, PROGRAM, folder / name, out, "llama"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run(list(map(str, command)), check=True, env=environment)
    return np.load(out)


def rms(difference):
    return np.sqrt(np.mean(np.square(difference)))


def test_a_small_llama_runs_and_is_fine_tuned_as_on_mlx(tmp_path):
    expected = run(tmp_path, "mlx")
    results = run(tmp_path, "metalloid", "-m", "metalloid.compat.mlx")
    exact = expected["llama, float32: logits"]
    for name in ("logits", "logits, cached"):
        np.testing.assert_allclose(results[f"llama, float32: {name}"], exact, atol=1e-4)
    for name in ("tokens", "tokens, batch"):
        assert (results[f"llama, float32: {name}"] == expected[f"llama, float32: {name}"]).all()
    # Both round to halves, in different operations.
    for name in ("logits", "logits, cached"):
        error = rms(results[f"llama, bfloat16: {name}"] - exact)
        assert error < 1.5 * rms(expected[f"llama, bfloat16: {name}"] - exact)
        four = f"llama, 4 bits: {name}"
        assert rms(results[four] - expected[four]) < 0.1 * rms(expected[four])
    losses, expected_losses = results["llama: losses"], expected["llama: losses"]
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
