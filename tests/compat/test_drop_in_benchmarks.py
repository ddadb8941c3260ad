"""benchmarks/drop_ins.py and small_launches.py, in sizes that only show that they work."""

import drop_ins
import numpy as np
import pytest
import small_launches


def test_what_drop_ins_cost(monkeypatch, capsys):
    monkeypatch.setattr(drop_ins, "CALLS", 2)
    monkeypatch.setattr(drop_ins, "REPEATS", 1)
    drop_ins.main()
    rows = capsys.readouterr().out.splitlines()[5:]
    names = {row.split(":")[0] for row in rows}
    assert names >= {"metalcompute", "guide", "Metal", "MetalPy", "MLX", "PyDotCompute"}


@pytest.mark.slow
def test_loops_compute_the_same(monkeypatch, capsys):
    monkeypatch.setattr(small_launches, "LAUNCHES", 2)
    loops = small_launches.add_loops(5)
    small_launches.timed("Additions", loops, np.arange(5) + 1.0, 2)
    exact = small_launches.wave_of_numpy(12, 40, np.float64)
    assert np.count_nonzero(exact) > 100
    small_launches.timed("A wave", small_launches.wave_loops(12, 40), exact, 80)
    out = capsys.readouterr().out
    for name in ("metalcompute, each waited for", "metalloid, buffers", "NumPy"):
        assert name in out
