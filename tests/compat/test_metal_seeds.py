"""The guide's programs, which drive Metal themselves, on the software device."""

import runpy
import shutil
from pathlib import Path

import pytest

SEEDS = Path(__file__).parent / "seeds" / "guide"


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the guide's own
@pytest.mark.parametrize(
    ("program", "kernel"),
    [
        ("run_1.py", "add2.metal"),
        ("run_2.py", "add2.metal"),
        ("run_3.py", "add2_float.metal"),
        ("run_numpy.py", "add2_float.metal"),
    ],
)
def test_seed_programs(program, kernel, tmp_path, monkeypatch, capsys):
    shutil.copy(SEEDS / kernel, tmp_path / "add2.metal")
    monkeypatch.chdir(tmp_path)
    after = runpy.run_path(str(SEEDS / program))
    assert capsys.readouterr().out == "✅ Reference matches output!\n"
    if program == "run_3.py":  # its own check cannot fail
        pairs = zip(after["input_array"], after["input_list"], strict=True)
        assert all(abs(result - (value + 2)) < 1e-6 for result, value in pairs)
