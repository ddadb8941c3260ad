"""Runs the Python blocks of a page of docs/ from top to bottom, in one namespace.

A text block is what the block before it prints. As in doctests, ``...`` in it stands for any text.
Three comments, which readers do not see, stand before blocks:

* ``<!-- needs: cuda -->``: the block runs where there is such a device, or such a module.
  ``mps`` is torch's device.
* ``<!-- measured -->``: numbers of the text block, with their units, are those of another run.
* ``<!-- setup:`` begins code that defines names for the blocks after it; ``-->`` ends it.

``python tools/run_page.py docs/tutorial/*.md`` runs pages, in the current folder.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import re
import sys
import types
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- (?:needs: (?P<needs>[\w.]+)|(?P<measured>measured)) -->\n+)?"
    r"(?:```(?P<kind>python|text)\n(?P<block>.*?)^```$|<!-- setup:\n(?P<setup>.*?)^-->$)",
    re.MULTILINE | re.DOTALL,
)
_DEVICES = ("cuda", "metal", "opencl")
_MEASURED = re.compile(r"\d[\d.]*(?: ?(?:us|ms|s|k|M|G)\b)?%?")
#: A row of line profiles: on some processors all instructions count as those of the lines.
_LIBRARY_ROW = re.compile(r"^.*\(functions of the Metal standard library\)\n", re.MULTILINE)
_OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def assert_output(output: str, expected: str, is_measured: bool = False) -> None:
    """Compare what a block printed with what the page shows."""
    if is_measured:
        output, expected = (
            _LIBRARY_ROW.sub("", _MEASURED.sub("#", text)) for text in (output, expected)
        )
    if not doctest.OutputChecker().check_output(expected, output, _OPTIONS):
        assert output == expected, f"printed:\n{output}\nthe page shows:\n{expected}"


def is_available(name: str) -> bool:
    """Whether this machine has a device of a kind, or a module."""
    if name in _DEVICES:
        from metalloid.runtime.devices.registry import devices_of

        return bool(devices_of(name))
    if name == "mps":
        return is_available("torch") and importlib.import_module("torch").mps.is_available()
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of a package that is not there
        return False


def run_page(page: Path) -> None:
    """Run a page; an AssertionError says which output differs."""
    text = page.read_text("utf-8")
    module = types.ModuleType(f"page_{page.stem}".replace("-", "_"))
    sys.modules[module.__name__] = module  # dataclasses look for the names of their types there
    output, is_run = None, True
    for match in _BLOCK.finditer(text):
        block = match["setup"] if match["kind"] is None else match["block"]
        if match["kind"] == "text":
            assert output is not None, "a text block follows a python block"
            if is_run:
                assert_output(output, block, bool(match["measured"]))
            output = None
            continue
        assert not output, f"the page does not show this output: {output}"
        is_run = match["needs"] is None or is_available(match["needs"])
        if not is_run:
            output = ""
            continue
        line = text.count("\n", 0, match.start("setup" if match["kind"] is None else "block"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block, str(page), "exec"), module.__dict__)
        output = printed.getvalue()
    assert not output, f"the page does not show this output: {output}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run_page(Path(name))
