"""Findings of a type checker in a program: mypy stands for all checkers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import metalloid

PROGRAM = """
import numpy as np
import metalloid as mtl

x = mtl.asarray([1.0])
reveal_type(mtl.exp(x) + mtl.sum(x))  # Array
reveal_type(mtl.random.normal((3,)))  # Array
reveal_type(mtl.linalg.norm(x))  # Array
reveal_type(mtl.fft.fft(x))  # Array
reveal_type(mtl.Device("cpu"))  # Device
device: mtl.Device = mtl.default_device()
assert isinstance(device, mtl.Device)
kernel = mtl.library("", include_dirs="folder").saxpy
reveal_type(kernel(np.zeros(3), x, threads=(3, 1), y=3))  # Event
reveal_type(kernel.dtype("x"))  # dtype
kernel(x)  # error
kernel(x, thread=3)  # error
kernel(x, threads="3")  # error
"""


@pytest.mark.slow
def test_programs_are_checked(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    findings = {}
    for line in done.stdout.splitlines():
        if match := re.match(
            r'program.py:(\d+): (?:(error)|note: Revealed type is "([\w.]+))', line
        ):
            findings[int(match[1])] = match[2] or match[3].rpartition(".")[2]
    expected = {
        number: comment
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if (comment := line.partition("  # ")[2])
    }
    assert findings == expected, done.stdout


def test_all_public_names_are_exported_for_checkers():
    """Checkers take the names in ``__all__`` of an installed package as public."""
    from metalloid.arrays import api

    text = Path(metalloid.__file__).read_text("utf-8")
    assert "__all__ += api.__all__" in text
    named = re.search(r"__all__ \+= \[(.*)\]", text)
    assert named is not None
    parts = set(re.findall(r'"(\w+)"', named[1]))
    assert set(dir(metalloid)) <= {*metalloid.__all__, *api.__all__, *parts}
