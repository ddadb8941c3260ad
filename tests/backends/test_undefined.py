"""Kernels that Metal leaves undefined never kill the process or hang; both engines agree."""

import json
import subprocess
import sys

import pytest
import undefined_kernels


@pytest.fixture(scope="module", params=["reference", "simd"])
def outcomes(request):
    """The outcome of each kernel, from a process that ran them all."""
    command = [sys.executable, undefined_kernels.__file__, request.param]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, (run.stdout.splitlines()[-1:], run.stderr)
    return dict(map(json.loads, run.stdout.splitlines()))


@pytest.mark.parametrize("name", undefined_kernels.CASES)
def test_undefined(name, outcomes):
    expected = undefined_kernels.CASES[name][1]
    assert bool(outcomes[name]) == bool(expected)
    assert expected in outcomes[name]
