"""The demo as a person at a terminal sees it."""

import os
import pty
import re
import subprocess
import sys


def test_the_picture_is_shown_in_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "metalloid", "demo", "--size", "64", "--output", "picture.png"],
        cwd=tmp_path,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor",
             "COLUMNS": "80", "LINES": "30"},
    )  # fmt: skip
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 65536):
            output += chunk
    except OSError:  # on Linux, the other side is closed
        pass
    assert process.wait() == 0
    text = output.decode()
    assert text.count("\N{UPPER HALF BLOCK}") > 400
    assert re.search(r"\x1b\[38;2;\d+;\d+;\d+;48;2;\d+;\d+;\d+m", text)  # two pixels a character
    assert "64 x 64 pixels" in text
    assert (tmp_path / "picture.png").exists()
