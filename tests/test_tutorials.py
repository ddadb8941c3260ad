"""The tutorials, and some pages for users, do what they show.

The Python blocks of a page run from top to bottom in one namespace; a text block is what the block
before it prints. As in doctests, ``...`` in it stands for any text.
"""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TUTORIALS = ROOT / "docs/internals/tutorials"
PAGES = [
    ROOT / "docs/debugging.md",
    ROOT / "docs/kernels.md",
    ROOT / "docs/scaling.md",
    *sorted(page for page in TUTORIALS.glob("*.md") if page.name != "README.md"),
]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def assert_output(output: str, expected: str) -> None:
    if not doctest.OutputChecker().check_output(expected, output, _OPTIONS):
        assert output == expected  # which shows the difference


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize(
    "page",
    [*PAGES, pytest.param(ROOT / "docs/profiling.md", marks=pytest.mark.slow)],
    ids=lambda page: page.stem,
)
def test_tutorial(page, fresh_cache):
    text = page.read_text("utf-8")
    names: dict[str, object] = {"__name__": page.stem}
    output = None
    for match in _BLOCK.finditer(text):
        kind, block = match.groups()
        if kind == "text":
            assert output is not None, "a text block follows a python block"
            assert_output(output, block)
            output = None
            continue
        assert not output, f"the page does not show this output: {output}"
        line = text.count("\n", 0, match.start()) + 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block, str(page), "exec"), names)
        output = printed.getvalue()
    assert not output, f"the page does not show this output: {output}"
