"""Signatures, for type checkers and editors, of names that `metalloid.numpy` defines on import.

They read its stubs. With ``METALLOID_UPDATE_STUB=1`` this rewrites them.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import metalloid.numpy as own

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("stub", ROOT / "tools" / "numpy_stub.py")
stub = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stub)


@pytest.mark.parametrize("path", list(stub.STUBS), ids=lambda path: path.name)
def test_the_stubs_are_current(path):
    text = stub.STUBS[path]()
    if os.environ.get("METALLOID_UPDATE_STUB"):
        path.write_text(text)
    if stub.VERSION not in path.read_text():
        pytest.skip(f"the stubs are written for another version than NumPy {numpy.__version__}")
    assert path.read_text() == text, "run tools/numpy_stub.py"


def test_methods_have_the_signatures_of_functions():
    assert str(stub.inspect.signature(own.arange(3).cumsum)).startswith(
        "(axis: 'int | None' = None"
    )


@pytest.mark.slow
def test_what_a_type_checker_finds(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import metalloid.numpy as np\nx = np.ones(3)\nreveal_type(x.argsort())\n"
        "reveal_type(np.sin)\nnp.median(x, nothing=2)\nx.nothing\nnp.nothing\n"
        "y = np.float32(np.pi)\nnp.random.default_rng(1).normal(size=3)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--strict", str(program)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    output = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment
    ).stdout
    assert 'program.py:3: note: Revealed type is "metalloid.numpy.array.ndarray"' in output
    assert 'program.py:4: note: Revealed type is "metalloid.numpy.ufunc.ufunc"' in output
    errors = [line.partition(": error: ")[2] for line in output.splitlines() if ": error:" in line]
    assert len(errors) == 3
    assert errors[0].startswith('Unexpected keyword argument "nothing"')
    assert errors[1].startswith('"ndarray" has no attribute "nothing"')
    assert errors[2].startswith('Module has no attribute "nothing"')
