"""Commands and workflows on pages run, or are listed with the reason that they do not."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
_BLOCK = re.compile(r"^```(sh|console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: By words of a command, why it does not run here.
NOT_RUN = {
    "python3 -m venv": "the CI's script runs the commands of the README; others are like them",
    "pip install": "installs packages",
    "git clone": "another project",
    "pytest": "test suites, which run by themselves",
    "benchmarks/": "needs another project",
    "metalloid selftest": "tests/cli/test_selftest.py",
    "sh tests/portable/compile.sh": "Apple's compiler",
    "python -m metalloid.compat.mlx": "tests/compat has tests of it",
    "python -m build": "tests/test_wheel_with_kernels.py, by hatchling itself",
    "examples/out_of_core.py": "20 GB; tests/test_examples.py runs it with less",
    "dask worker": "two GPUs",
    "ARRAY_API_TESTS_MODULE": "another project",
    "--skips-file": "the rest of that command",
}
KERNELS = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device float *y, device const float *x, constant float &a,
                  uint i [[thread_position_in_grid]]) { y[i] = fma(a, x[i], y[i]); }
"""
SCRIPT = """import numpy as np, sys
import metalloid as mtl
lib = mtl.library(path="kernels.metal", device="cpu")
assert sys.argv[1:] == ["its", "arguments"]
text = "kernel void blur(device float *x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }"
mtl.library(text, device="cpu").blur(np.ones(64, np.float32), threads=64)
"""


def commands_of(kind, block):
    """The commands of a block, with what a console shows after each, comments removed."""
    block = block.replace("\\\n", " ")
    if kind == "console":
        yield from re.findall(r"^\$ (.*)\n((?:[^$\n].*\n|\n)*)", block, re.MULTILINE)
    else:
        for line in block.splitlines():
            yield re.sub(r"\s#.*", "", line).strip(), None


def all_commands():
    for page in PAGES:
        for kind, block in _BLOCK.findall(page.read_text("utf-8")):
            if kind != "yaml":
                yield from ((page, *each) for each in commands_of(kind, block))


RUN = [each for each in all_commands() if not any(words in each[1] for words in NOT_RUN)]


def test_reasons_are_needed():
    commands = [command for _, command, _ in all_commands()]
    for words in NOT_RUN:
        assert any(words in command for command in commands), words
    assert len(RUN) >= 5


@pytest.mark.slow
@pytest.mark.needs("the CPU")
@pytest.mark.parametrize(("page", "command", "shown"), RUN, ids=lambda each: str(each)[:60])
def test_command(page, command, shown, tmp_path):
    (tmp_path / "kernels.metal").write_text(KERNELS)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if "run kernels.mtlb" in command:
        targets = ["--target", "cpu:x86-64-v2", "--target", "cpu:aarch64"]
        compile_ = ["compile", "-o", "kernels.mtlb", "kernels.metal", *targets]
        subprocess.run([sys.executable, "-m", "metalloid", *compile_], cwd=tmp_path, check=True)
    words = shlex.split(command)
    assert words[0] == "metalloid", command
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"METALLOID_DEVICE": "cpu", "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"(?:-o|--plot|--perfetto) (\S+)", command):
        assert (tmp_path / name).exists(), name
    if shown is not None:
        time = r"\d\S* s on cpu \(simd: \d+ threads"
        assert re.sub(time, "", done.stdout).split() == re.sub(time, "", shown).split()


@pytest.mark.needs("the CPU")
def test_python_of_the_readme(capsys):
    names = {}
    for block in _PYTHON.findall((ROOT / "README.md").read_text("utf-8")):
        exec(block, names)
        if "lib" in names and "e" not in names:
            exact = np.float32(2.5) * names["x"].astype(float)
            np.testing.assert_array_max_ulp(names["y"], exact.astype(np.float32), maxulp=1)
    x = np.asarray(names["x"]).astype(float)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(names["y"], e / e.sum(1, keepdims=True), rtol=2e-5)
    steps = [line for line in capsys.readouterr().out.splitlines() if " -> float32" in line]
    assert len(steps) == 1  # "one kernel"


def test_workflows_are_yaml():
    yaml = pytest.importorskip("yaml")
    for page in PAGES:
        for kind, block in _BLOCK.findall(page.read_text("utf-8")):
            if kind == "yaml":
                assert yaml.safe_load(block), page.name
