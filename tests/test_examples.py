"""Every script of examples/ runs as a user would run it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
#: They start processes, which takes seconds.
SLOW = ("out_of_core.py",)


def scripts():
    for script in sorted(EXAMPLES.glob("*.py")):
        marks = [pytest.mark.slow] if script.name in SLOW else []
        yield pytest.param(script, marks=marks, id=script.name)


@pytest.mark.parametrize("script", scripts())
def test_example(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
