"""The programs of docs/transforms.md run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "transforms.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number):
    exec(compile(PROGRAMS[number], f"{PAGE.name}:{number}", "exec"), {})
