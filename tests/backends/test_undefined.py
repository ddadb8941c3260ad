"""Kernels that Metal leaves undefined never kill the process or hang; both engines agree."""

import json
import subprocess
import sys

import pytest
import undefined_kernels


@pytest.mark.parametrize("engine", ["reference", "simd"])
def test_undefined(engine):
    """One process runs them all."""
    command = [sys.executable, undefined_kernels.__file__, engine]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, (run.stdout.splitlines()[-1:], run.stderr)
    outcomes = dict(map(json.loads, run.stdout.splitlines()))
    expected = {name: case[1] for name, case in undefined_kernels.CASES.items()}
    assert outcomes.keys() == expected.keys()
    wrong = {
        name: (outcomes[name], text)
        for name, text in expected.items()
        if bool(outcomes[name]) != bool(text) or text not in outcomes[name]
    }
    assert not wrong
