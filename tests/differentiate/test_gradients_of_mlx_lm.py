"""Gradients of mlx-lm's kernels agree with those of the same formulas of arrays."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = [name for name in ("mlx", "mlx_lm") if importlib.util.find_spec(name) is None]
#: Kernels of whose gradients large parts cancel: those of maxima, which are 0.
BOUNDS = {"kl_forward": 1e-4, "js_forward": 1e-4}


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_kernels_of_mlx_lm():
    program = Path(__file__).with_name("gradients_of_mlx_lm.py")
    output = subprocess.run([sys.executable, program], check=True, stdout=subprocess.PIPE).stdout
    errors = {name: error for name, error in json.loads(output).items() if error is not None}
    assert {"gated_delta", "ssm", "wkv7", "kl_backward", "js_backward"} <= errors.keys()
    for name, error in errors.items():
        assert error <= BOUNDS.get(name, 1e-5), (name, error)
