"""A line says what takes longer than a second to compile, on a terminal and nowhere else."""

import io
import logging
import re
import time

import pytest

import metalloid as mtl
from metalloid.compiler.toolchain import progress
from metalloid.compiler.toolchain.progress import compiling

SUBJECT = "kernel 'slow' for the CPU"


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A second is long for a test."""
    monkeypatch.setattr(progress, "PATIENCE", 0.05)


def compile_slowly():
    with compiling(SUBJECT) as begin:
        begin("C++ to LLVM IR")
        begin("vectorising")
        time.sleep(0.3)


def test_a_terminal_shows_a_line_while_it_lasts(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    compile_slowly()
    *lines, end = terminal.getvalue().split("\r\033[K")
    assert lines[1] == f"metalloid: compiling {SUBJECT}: vectorising (0 s)"
    assert end == ""  # nothing stays


def test_fast_compilations_say_nothing(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with caplog.at_level(logging.INFO, logger="metalloid"), compiling(SUBJECT):
        pass
    assert terminal.getvalue() == ""
    assert not caplog.records


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_is_printed_elsewhere_or_if_it_is_disabled(monkeypatch, is_terminal):
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with mtl.config.scope(progress=not is_terminal):
        compile_slowly()
    assert stream.getvalue() == ""


def test_the_log_has_the_stages_and_their_seconds(caplog):
    with caplog.at_level(logging.INFO, logger="metalloid"):
        compile_slowly()
    first, last = (record.getMessage() for record in caplog.records)
    assert first == f"compiling {SUBJECT}: vectorising (0 s)"
    stages = r"\(C\+\+ to LLVM IR \d\.\d, vectorising \d\.\d\)"
    assert re.fullmatch(rf"compiled {SUBJECT} in \d\.\d s {stages}", last)


def test_of_concurrent_compilations_the_oldest_is_shown(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with compiling("the first"), compiling("the second"):
        time.sleep(0.3)
    assert "metalloid: compiling the first (0 s), and 1 more" in terminal.getvalue()
