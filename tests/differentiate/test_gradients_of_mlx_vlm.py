"""Gradients of mlx-vlm's kernels agree with those of the same formulas of arrays."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = [name for name in ("mlx", "mlx_vlm") if importlib.util.find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_kernels_of_mlx_vlm():
    program = Path(__file__).with_name("gradients_of_mlx_vlm.py")
    output = subprocess.run([sys.executable, program], check=True, stdout=subprocess.PIPE).stdout
    errors = {name: error for name, error in json.loads(output).items() if error is not None}
    assert len(errors) >= 10
    for name, error in errors.items():
        assert error <= 1e-5, (name, error)
