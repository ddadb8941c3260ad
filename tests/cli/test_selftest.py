import pytest

import metalloid as mtl
from metalloid.cli.main import main


@pytest.mark.parametrize("name", ["cpu", "metal"])
def test_the_table_says_right(capsys, name):
    with mtl.config.scope(metal_binding="metalloid.compat.Metal"):
        assert main(["selftest", "--device", name]) == 0
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert rows[0] == f"| on {name} | result | time |"
    assert len(rows) == 14
    assert all("| right |" in row for row in rows[2:])


def test_a_wrong_result_is_told(capsys, monkeypatch):
    from metalloid.cli import selftest

    def fails(lib, device):
        """A check that raises."""
        raise mtl.LaunchError("[k] no\nmore")

    def lies(lib, device):
        """A check that fails."""
        return False

    monkeypatch.setattr(selftest, "_CHECKS", (fails, lies))
    assert main(["selftest"]) == 1
    shown = capsys.readouterr().out
    assert "| A check that raises | LaunchError: [k] no | 0.00 ms |" in shown
    assert "| A check that fails | WRONG |" in shown


def test_a_report_names_the_gpus_limits(capsys):
    with mtl.config.scope(metal_binding="metalloid.compat.Metal"):
        assert main(["info", "--report"]) == 0
    shown = capsys.readouterr().out
    assert "metal families" in shown
    assert "Metal3" in shown
    assert str(mtl.config.cache_dir or "/.cache/") not in shown
