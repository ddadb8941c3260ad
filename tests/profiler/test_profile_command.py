"""``metalloid profile``: it runs a script like Python, and prints and writes what kernels took."""

import json
import sys

import pytest

from metalloid.cli.main import main

pytestmark = pytest.mark.needs("the CPU")

SCRIPT = """
import sys
import numpy as np
import metalloid as mtl
import neighbour

lib = mtl.library('''kernel void twice(device float *x,
                                       uint i [[thread_position_in_grid]])
{
    x[i] *= 2;
}''', device="cpu")
x = np.ones(neighbour.SIZE, np.float32)
for _ in range(3):
    lib.twice(x, threads=len(x))
print(__name__, sys.argv[1:], x.sum())
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "neighbour.py").write_text("SIZE = 64\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    yield tmp_path / "script.py"
    sys.modules.pop("neighbour", None)


def test_a_script_with_all_outputs(script, tmp_path, capsys):
    arguments, path = sys.argv, list(sys.path)
    trace = tmp_path / "trace.json"
    options = ["--lines", "twice", "--perfetto", str(trace)]
    assert main(["profile", *options, str(script), "3", "--more"]) == 3  # the script's own status
    assert (sys.argv, sys.path) == (arguments, path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "__main__ ['3', '--more'] 512.0"
    (row,) = [line for line in lines if " twice " in f" {line} " and "script.py:14" in line]
    assert " 3 " in row
    (of_line,) = [line for line in lines if line.endswith("x[i] *= 2;")]
    assert "192" in of_line.split()  # operations of three launches
    slices = json.loads(trace.read_text())["traceEvents"]
    assert sum(each["ph"] == "X" and each["name"] == "twice" for each in slices) >= 3


@pytest.mark.slow
def test_a_picture_and_no_counts(script, tmp_path, capsys):
    picture = tmp_path / "profile.png"
    assert main(["profile", "--no-counts", "--plot", str(picture), str(script), "0"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in capsys.readouterr().out


def test_errors(script, tmp_path, capsys):
    assert main(["profile", str(tmp_path / "missing.py")]) != 0
    assert "no such file" in "".join(capsys.readouterr())
    with pytest.raises(ValueError, match="wrong"):  # the script's own error
        main(["profile", str(script), "wrong"])
