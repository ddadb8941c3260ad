"""tools/bisect_passes.py names the optional pass that makes a result wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "bisect_passes.py"

#: A kernel whose result is wrong if `rematerialize`, an optional pass, runs on it.
SPOILED = """
import dataclasses, sys
import numpy as np
import metalloid as mtl
from metalloid.compiler.vectorize import pipeline

def spoil(function, context):
    for each in function.instructions():
        if each.op == "fsub":
            each.operands.reverse()

pipeline.VECTORIZATION = tuple(
    dataclasses.replace(each, run=spoil) if each.name == "rematerialize" else each
    for each in pipeline.VECTORIZATION
)
kernel = mtl.library('''
kernel void f(device float* out [[buffer(0)]], constant float& x [[buffer(1)]],
              uint t [[thread_position_in_grid]]) { out[t] = float(t) - x; }
''', device="cpu").function("f")
out = np.zeros(64, "f4")
kernel(out, np.float32(5), threads=64)
sys.exit(int((out != np.arange(64, dtype="f4") - 5).any()))
"""


def bisected(*command):
    words = [sys.executable, str(TOOL), "--", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_bisecting_finds_the_pass_that_breaks_a_kernel(tmp_path):
    script = tmp_path / "spoiled.py"
    script.write_text(SPOILED)
    outcome = bisected(sys.executable, str(script))
    assert outcome.returncode == 0, outcome.stderr
    number, name, function = outcome.stdout.removeprefix("run ").split(" ", 2)
    assert (name, function) == ("rematerialize", "on @mtl_thread\n")
    assert f"{int(number[:-1]) - 1} passes: right" in outcome.stderr
    assert f"{int(number[:-1])} passes: wrong (status 1)" in outcome.stderr


def command_with(passes, guilty):
    """A command that runs some passes, one of which makes its result wrong."""
    lines = "".join(f"PASS running ({n}) pass{n} on @f\\n" for n in range(1, passes + 1))
    return "sh", "-c", f"printf '{lines}' >&2; [ {guilty} -gt $METALLOID_PASS_LIMIT ]"


@pytest.mark.parametrize("guilty", [1, 2, 7, 19, 20])
def test_bisecting_finds_every_run(guilty):
    outcome = bisected(*command_with(20, guilty))
    assert outcome.stdout == f"run {guilty}: pass{guilty} on @f\n"
    assert outcome.stderr.count("\n") <= 2 + 5  # 2 ** 5 > 20


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("true",), "no optional pass runs"),
        (("false",), "wrong without optional passes"),
        (("sh", "-c", "echo 'PASS running (1) a on @f' >&2"), "right with all optional passes"),
        ((), "which command?"),
    ],
)
def test_what_cannot_be_bisected_is_said(command, why):
    outcome = bisected(*command)
    assert outcome.returncode != 0
    assert why in outcome.stderr
    assert not outcome.stdout


def test_tools_do_not_hide_modules_of_python():
    """Python searches the folder of a script first: tools/bisect.py would be ``import bisect``."""
    names = {Path(name).stem for name in os.listdir(TOOL.parent)}
    assert names.isdisjoint(sys.stdlib_module_names)
