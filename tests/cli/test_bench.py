"""``metalloid bench``."""

import sys

import pytest

from metalloid.bench.ceilings import Ceilings
from metalloid.bench.roofline import Point
from metalloid.cli.main import main


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def test_the_table_has_a_row_per_kernel(capsys):
    names = ("saxpy", "julia", "matmul", "softmax", "histogram")
    chosen = [f"--kernel={name}" for name in names]
    assert main(["bench", "cpu", "--tiny", "--repeat=1", *chosen]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "GB/s" in lines[0]
    assert "GFLOP/s" in lines[0]
    assert lines[1].split() == [
        "kernel", "time", "GFLOP/s", "GB/s", "FLOP/byte", "of", "the", "limit", "engine",
    ]  # fmt: skip
    rows = {line.split()[0]: line.split() for line in lines[2:] if line.strip()}
    assert rows.keys() >= set(names)
    for kernel in names[:-1]:
        assert rows[kernel][2] == "ms"
    assert rows["saxpy"][5] == "0.167", "two operations for twelve bytes"
    assert rows["histogram"][3] == "-", "it does not compute with floats"


def test_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    picture = tmp_path / "roofline.png"
    assert main(["bench", "cpu", "--tiny", "--kernel=saxpy", f"--plot={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith(f"picture: {picture}\n")
    assert main(["bench", "cpu", "--tiny", "--kernel=saxpy", f"--plot={tmp_path}/x.nonsense"]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_what_is_missing_is_named_before_anything_runs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "cpu", "--plot", "x.png"]) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "[bench] --plot needs matplotlib, which is not installed. "
        "Run: pip install 'metalloid[plot]'\n"
    )
    assert not captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "nonsense"], "[bench] unknown kernel 'nonsense'; known: ['saxpy', "),
        (["--repeat", "0"], "[bench] --repeat 0 is less than 1."),
    ],
)
def test_errors(capsys, arguments, message):
    assert main(["bench", "cpu", *arguments]) == 1
    assert capsys.readouterr().err.startswith(message)


def test_the_lower_of_both_limits_counts():
    limits = Ceilings(bandwidth=10, arithmetic=100)
    assert limits.at(1) == 10
    assert limits.at(1000) == 100
    assert Point("f", 2, 100, 10, "").share(limits) == 0.5
    assert Point("f", 2, 0, 10, "").share(limits) == 0.5
