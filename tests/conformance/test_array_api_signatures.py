"""The names and signatures of the Python array API 2025.12, from a list of them.

The results of the functions are tested against NumPy and mpmath in tests/array, and by the standard's
own suite: docs/evidence/array-api.md says how to run it, and array_api_skips.txt what it skips.
"""

import ast
import inspect
import itertools
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

STANDARD = (Path(__file__).parent / "array_api_2025_12.txt").read_text().splitlines()
FUNCTIONS = [line for line in STANDARD if "(" in line]


def implementation(name):
    """The project's object that has a name of the standard."""
    *path, last = name.split(".")
    home = mtl
    for part in path:
        home = getattr(home, part)
    return inspect.getattr_static(home, last) if home is mtl.Array else getattr(home, last)


def parameters(line):
    """The parameters of a signature's text."""
    return ast.parse(f"def f({line.split('(', 1)[1]}: ...").body[0].args


def test_the_list_is_complete():
    assert len(STANDARD) == 215
    assert len([line for line in STANDARD if line.startswith("linalg.")]) == 25
    assert len([line for line in STANDARD if line.startswith("fft.")]) == 14


@pytest.mark.parametrize("line", [line for line in STANDARD if "(" not in line])
def test_attributes_and_constants(line):
    if line.startswith("Array."):
        assert isinstance(implementation(line), property)
    else:
        assert hasattr(mtl, line)


@pytest.mark.parametrize("line", FUNCTIONS, ids=lambda line: line.split("(")[0])
def test_functions_take_what_the_standard_gives_them(line):
    ours = inspect.signature(implementation(line.split("(")[0]))
    standard = parameters(line)
    required = len(standard.posonlyargs + standard.args) - len(standard.defaults)
    positional = [arg.arg for arg in standard.posonlyargs]
    by_either = [arg.arg for arg in standard.args]
    keywords = [arg.arg for arg in standard.kwonlyargs]
    values = [object()] * len(positional + by_either)
    ours.bind(*values, **dict.fromkeys(keywords))
    optional = {k for k, v in zip(keywords, standard.kw_defaults, strict=True) if v is not None}
    ours.bind(*values[:required], **dict.fromkeys(set(keywords) - optional))
    ours.bind(*values[: len(positional)], **dict.fromkeys(by_either + keywords))


@pytest.mark.parametrize("line", FUNCTIONS, ids=lambda line: line.split("(")[0])
def test_defaults_are_the_standards(line):
    ours = inspect.signature(implementation(line.split("(")[0])).parameters
    standard = parameters(line)
    for arg, default in zip(standard.kwonlyargs, standard.kw_defaults, strict=True):
        if default is not None and arg.arg in ours and ours[arg.arg].default is not None:
            assert ours[arg.arg].default == ast.literal_eval(default), arg.arg


def test_types_are_promoted_as_the_standard_says():
    signed, unsigned = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
    floats = ("float32", "float64", "complex64", "complex128")
    for a, b in itertools.chain(
        itertools.product(signed, signed), itertools.product(unsigned, unsigned),
        itertools.product(signed, unsigned[:3]), itertools.product(floats, floats),
    ):  # fmt: skip
        x, y = mtl.zeros(1, dtype=a), mtl.zeros(1, dtype=b)
        assert mtl.result_type(x, y) == (x + y).dtype == np.promote_types(a, b)
    for a in signed:
        with pytest.raises(TypeError):
            mtl.result_type(mtl.zeros(1, dtype=a), mtl.zeros(1, dtype="uint64"))


def test_what_the_namespace_says_about_itself():
    info = mtl.zeros(1).__array_namespace__(api_version="2025.12").__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"]
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == mtl.float32
    wide = {"complex128"} if mtl.default_device().has_float64 else set()
    assert set(info.dtypes(kind="complex floating")) == {"complex64", *wide}
