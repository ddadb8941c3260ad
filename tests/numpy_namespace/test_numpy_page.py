"""docs/numpy.md lists every name of NumPy."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import metalloid.numpy as own

ROOT = Path(__file__).parents[2]


def generator(tool="numpy_table"):
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current():
    table = generator()
    if os.environ.get("METALLOID_UPDATE_STUB"):
        table.PAGE.write_text(table.page())
    text = table.PAGE.read_text()
    if table.VERSION not in text:
        pytest.skip(f"docs/numpy.md is written for another version than NumPy {numpy.__version__}")
    assert text == table.page(), "run tools/numpy_table.py"


def test_at_most_25_names_are_exceptions_each_for_a_reason():
    table = generator()
    missing = [row for pair in table.MODULES.values() for row in table.rows(*pair)
               if row[1] in ("host", "missing")]  # fmt: skip
    assert 5 < len(missing) <= 25
    assert all(reason for _, _, reason in missing)
    for name in numpy.__all__:
        assert hasattr(own, name) or name in own.host.MISSING, name


def test_every_name_of_the_reference_has_an_example():
    table = generator()
    if table.VERSION not in table.PAGE.read_text():
        pytest.skip(f"docs/numpy.md is written for another version than NumPy {numpy.__version__}")
    names = {
        f"{title}.{name}".removeprefix("numpy.")
        for title, modules in table.MODULES.items()
        for name, kind, _ in table.rows(*modules)
        if kind != "missing"
    }
    listed = [example.name for example in generator("numpy_reference").examples()]
    assert sorted(listed) == sorted(names)


@pytest.mark.slow
def test_examples_of_the_reference_print_what_numpy_prints():
    subprocess.run([sys.executable, ROOT / "tools" / "numpy_reference.py"], check=True)
