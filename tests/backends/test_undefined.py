"""Kernels that Metal leaves undefined never kill the process or hang; both engines agree."""

import json
import subprocess
import sys

import pytest
import undefined_kernels


@pytest.mark.parametrize(
    ("engine", "step"),
    [
        ("reference", 3),
        pytest.param("reference", 1, marks=pytest.mark.slow),
        ("simd", 2),
        pytest.param("simd", 1, marks=pytest.mark.slow),
    ],
)
def test_undefined(engine, step):
    """One process runs every nth kernel."""
    command = [sys.executable, undefined_kernels.__file__, engine, str(step)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, (run.stdout.splitlines()[-1:], run.stderr)
    outcomes = dict(map(json.loads, run.stdout.splitlines()))
    expected = {name: case[1] for name, case in list(undefined_kernels.CASES.items())[::step]}
    assert outcomes.keys() == expected.keys()
    wrong = {
        name: (outcomes[name], text)
        for name, text in expected.items()
        if bool(outcomes[name]) != bool(text) or text not in outcomes[name]
    }
    assert not wrong
