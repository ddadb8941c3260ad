"""The guide's programs, which drive Metal themselves, on the software device.

Its helper `load` and the program that uses it are in test_compat_guide.py.
"""

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


def test_the_translation_from_objective_c(tmp_path, monkeypatch):
    (tmp_path / "default.metal").write_text("""
    kernel void add_arrays(device const float *a, device const float *b, device float *sum,
                           uint i [[thread_position_in_grid]]) { sum[i] = a[i] + b[i]; }""")
    monkeypatch.chdir(tmp_path)
    after = runpy.run_path(str(SEEDS / "translated.py"))
    state, error = after["_mAddFunctionPSO"]
    assert error is None
    assert state.maxTotalThreadsPerThreadgroup() == 1024
    assert after["addFunction"].name() == "add_arrays"
