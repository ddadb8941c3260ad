"""The other tests pass with checks and portable texts, and with the texts for GPUs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checked_derivatives import check_derivatives

import metalloid as mtl

FOLDER = Path(__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("test_*.py") if path != Path(__file__))


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("plugin", ["checked_derivatives", "texts_for_gpus"])
def test_tests_pass_with(plugin, file):
    """All but those on the reference engine, and

    - 2,500 random programs, which take hours with checks;
    - a kernel that reads outside of its memory, which is reported itself.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", plugin]
    others = "not reference and not many_random and not reads_outside"
    command += ["-p", "no:cacheprovider", "-n", "0", "-k", others]
    path = os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])
    # The folder of crashes is that of the workers around it.
    env = {name: v for name, v in os.environ.items() if name != "METALLOID_CRASH_FOLDER"}
    done = subprocess.run(
        [*command, str(FOLDER / file)], env={**env, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


PRODUCT = """
kernel void product(device const float *x, device const float *z, device float *y,
                    uint i [[thread_position_in_grid]]) { y[i] = x[i] * z[i]; }
"""


@pytest.mark.slow
def test_a_race_of_an_adjoint_is_reported(monkeypatch):
    check_derivatives(monkeypatch)
    adjoint, x = mtl.library(PRODUCT, device="cpu").product.vjp(), np.ones(64, np.float32)
    overlapping = np.zeros(65, np.float32)
    with pytest.raises(mtl.SanitizerError, match="d_x"):
        adjoint(x, x, x, x, overlapping[:64], overlapping[1:], threads=64)


@pytest.mark.slow
def test_a_text_that_is_not_portable_is_refused(monkeypatch):
    check_derivatives(monkeypatch)
    kernel = mtl.library("typedef double wide;" + PRODUCT, device="cpu").product
    with pytest.raises(mtl.CompileError, match="double"):
        kernel.vjp()
