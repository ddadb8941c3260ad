"""Every script of examples/ runs as a user would run it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
#: They start processes, which takes seconds.
SLOW = ("fit_splats.py", "out_of_core.py")


SCRIPTS = [
    pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path.name in SLOW else [])
    for path in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_example(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
