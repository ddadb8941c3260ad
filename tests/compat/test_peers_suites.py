"""benchmarks/peers_suites.py: programs of others, redirected, in copies of their folders."""

import json

import peers_suites
from peers_suites import FileOfTests, Program, Suite


def test_programs_are_run_and_judged(tmp_path, monkeypatch, capsys):
    (tmp_path / "beside.py").write_text("value = 4")
    (tmp_path / "good.py").write_text(
        "import metalcompute as mc, beside, sys\n"
        "assert bytes(mc.Device().buffer(beside.value)) == bytes(4)\n"
        "count = 1000000\n"
        "assert count == 10\n"
        "print(sys.argv[1], sys.stdin.read())\n"
    )
    (tmp_path / "bad.py").write_text("raise SystemExit('no good')")
    cells = [
        ("markdown", "# text"),
        ("code", "x = 1"),
        ("code", "import nowhere"),
        ("code", "print(x)"),
    ]
    book = {"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}
    (tmp_path / "book.ipynb").write_text(json.dumps(book))
    suite = Suite(
        "mine",
        "good.py",
        (("metalcompute", "metalloid.compat.metalcompute"),),
        (
            Program("good.py", ("argument",), b"input", (("1000000", "10"),)),
            Program("bad.py"),
            Program("book.ipynb", without=("nowhere",)),
        ),
        (("other.py", "it expects a Mac"),),
    )
    monkeypatch.delenv("METALLOID_DEVICE", raising=False)  # other processes do not know "own"
    monkeypatch.setattr(peers_suites, "SUITES", (suite,))
    assert peers_suites.main([str(tmp_path)]) == 1
    *lines, row = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok")
    assert lines[0].endswith("good.py: argument input")
    assert lines[1].startswith("FAILED")
    assert lines[1].endswith("bad.py: no good")
    assert lines[2].endswith("book.ipynb: 1")
    assert lines[3] == "left out  other.py: it expects a Mac"
    assert row == "| mine | unknown | 2 | 1 | 1 |"


def test_each_test_of_a_file_counts(tmp_path, monkeypatch, capsys):
    (tmp_path / "test_it.py").write_text(
        "import builtins\n"
        "from pydotcompute.core.unified_buffer import UnifiedBuffer\n"
        "import mlx.core as mx\n"
        "def test_good(): assert len(UnifiedBuffer(3)) == len(mx.zeros(3)) == builtins.extent\n"
        "def test_bad(): assert False\n"
        "def test_hopeless(): assert False\n"
    )
    tests = FileOfTests("test_it.py", ("--deselect", "test_hopeless"), setup="import builtins\n"
                  "builtins.extent = 3\n")  # fmt: skip
    redirects = (("pydotcompute", "metalloid.compat.pydotcompute"), ("mlx.core", "metalloid"))
    suite = Suite("mine", "test_it.py", redirects, (tests,))
    monkeypatch.delenv("METALLOID_DEVICE", raising=False)  # other processes do not know "own"
    monkeypatch.setattr(peers_suites, "SUITES", (suite,))
    assert peers_suites.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "| mine | unknown | 1 | 1 | 0 |"
