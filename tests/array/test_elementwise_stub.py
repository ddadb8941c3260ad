"""Signatures, for type checkers and editors, of the functions from the table of operations.

They read ``elementwise.pyi``. With ``METALLOID_UPDATE_STUB=1`` this rewrites it.
"""

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from metalloid.arrays import api
from metalloid.arrays.functions import elementwise
from metalloid.arrays.ir.ops import OPS

STUB = Path(elementwise.__file__).with_suffix(".pyi")
HEAD = '''"""Elementwise functions for type checkers: made of them by tests/array/test_elementwise_stub.py."""

from typing import Any

from metalloid.arrays.array import Array
'''


def definition(function):
    """A function with what its documentation says first and last: what it does, and how well."""
    parameters = ", ".join(f"{name}: Any" for name in inspect.signature(function).parameters)
    summary, _, rest = inspect.getdoc(function).partition("\n")
    operands = " ".join(rest.partition(" : Array or number\n")[2].partition("\n\n")[0].split())
    notes = rest.partition("Notes\n-----\n")[2].strip()
    body = "\n".join(textwrap.wrap(f"{operands} {notes}", 96, break_on_hyphens=False))
    doc = textwrap.indent(f'"""{summary}\n\n{body}\n"""', "    ")
    return f"def {function.__name__}({parameters}, /) -> Array:\n{doc}\n"


def test_the_stub_is_what_there_is():
    functions = [value for name, value in vars(elementwise).items() if name in OPS]
    text = "\n".join([HEAD, *map(definition, functions)])
    if os.environ.get("METALLOID_UPDATE_STUB"):
        STUB.write_text(text)
    assert STUB.read_text() == text
    assert len(functions) > 60


def test_the_api_exports_every_row():
    """It lists the names itself, as type checkers read literal lists only."""
    assert OPS.keys() <= set(api.__all__)


@pytest.mark.slow
def test_what_a_type_checker_finds(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import metalloid as mtl\nx = mtl.ones(3)\nreveal_type(mtl.exp(x))\nreveal_type(x + 1)\n"
        "reveal_type(mtl.add)\nmtl.exp(x, x)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(program)]
    environment = {**os.environ, "MYPYPATH": str(STUB.parents[3])}
    output = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment
    ).stdout
    kind = "metalloid.arrays.array.Array"
    assert output.count(f'Revealed type is "{kind}"') == 2
    assert f'Revealed type is "def (Any, Any) -> {kind}"' in output
    assert 'program.py:6: error: Too many arguments for "exp"' in output
