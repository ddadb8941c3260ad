"""A user's file in pyright's strict mode, as editors check it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import metalloid

PROGRAM = '''"""A user's program."""

import numpy as np

import metalloid as mtl
import metalloid.numpy as mnp

lib = mtl.library("kernel void f(device float *x) { x[0] = 1; }", defines={"A": 1})
event = lib.f(np.zeros(3, np.float32), threads=(3, 1), group_size=1)
seconds: float = event.seconds
x: mtl.Array = mtl.exp(mtl.asarray([1.0])) + 1
y = mtl.random.normal((3,))
z = mtl.linalg.norm(mtl.fft.fft(y))
total: float = float(z + mtl.sum(x))
device: mtl.Device = mtl.default_device()
buffer = mtl.Buffer(np.zeros(3))
with mtl.config.scope(timeout=3.0):
    values = np.asarray(buffer)


def square(t: mtl.Array) -> mtl.Array:
    return mtl.sum(t * t)


slope = mtl.grad(square)(x)
constant = lib.function("f", constants={"c": 1})
sampler = mtl.Sampler(filter="linear")
with mtl.Graph() as graph:
    lib.f(buffer, threads=1)
graph.launch()
w = mnp.mean(mnp.arange(3.0))
try:
    lib.f(buffer, threads=1).wait()
except (mtl.KernelFault, mtl.ArgumentError) as error:
    print(error, seconds, total, values, slope, constant, sampler, w, device)
lib.f(buffer)  # error: no threads
lib.f(buffer, thread=3)  # error
mtl.linspase(0, 1, 3)  # error
'''


@pytest.mark.slow
def test_strict(tmp_path):
    pytest.importorskip("pyright", reason="pyright is not installed")
    if not shutil.which("node"):
        pytest.skip("pyright needs node")
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = [str(Path(metalloid.__file__).parents[1])]
    options = {"typeCheckingMode": "strict", "extraPaths": paths}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    findings = json.loads(done.stdout[done.stdout.index("{") :])["generalDiagnostics"]
    lines = PROGRAM.splitlines()
    expected = {n for n, line in enumerate(lines) if "# error" in line}
    reported = {f["range"]["start"]["line"]: f["message"] for f in findings}
    assert reported.keys() == expected, reported
