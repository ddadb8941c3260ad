"""Runs the Python blocks of a page of docs/ from top to bottom, in one namespace.

A text block is what the block before it prints. As in doctests, ``...`` in it stands for any text.
``python tools/run_page.py docs/tutorial/*.md`` runs pages, in the current folder.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import types
from pathlib import Path

_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def assert_output(output: str, expected: str) -> None:
    """Compare what a block printed with what the page shows."""
    if not doctest.OutputChecker().check_output(expected, output, _OPTIONS):
        assert output == expected, f"printed:\n{output}\nthe page shows:\n{expected}"


def run_page(page: Path) -> None:
    """Run a page; an AssertionError says which output differs."""
    text = page.read_text("utf-8")
    module = types.ModuleType(f"page_{page.stem}".replace("-", "_"))
    sys.modules[module.__name__] = module  # dataclasses look for the names of their types there
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
            exec(compile("\n" * line + block, str(page), "exec"), module.__dict__)
        output = printed.getvalue()
    assert not output, f"the page does not show this output: {output}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run_page(Path(name))
