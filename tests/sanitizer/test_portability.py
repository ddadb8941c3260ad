"""Checked libraries warn of what Apple's compiler is known to refuse."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compiler.frontend import portability

pytestmark = pytest.mark.needs("the CPU")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
DOUBLES = (
    HEAD
    + """kernel void f(device float* y, uint i [[thread_position_in_grid]]) {
  double exact = y[i];
  y[i] = exact * 2;
}
"""
)
MEMORY = (
    HEAD
    + """kernel void f(device float* y, uint i [[thread_position_in_grid]]) {
  threadgroup float a[9000];
  a[i] = i;
  y[i] = a[i];
}
"""
)


@pytest.mark.parametrize("setting", [False, True])
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [(DOUBLES, 4, "'double'"), (MEMORY, 3, r"Threadgroup memory size \(36000\)")],
)
def test_what_is_refused_elsewhere(text, line, message, setting):
    where = f"program_source:{line}:.*Apple's compiler refuses this: .*{message}"
    y = np.ones(4, np.float32)

    def run():
        lib = mtl.library(text, device="cpu", check=not setting)
        lib.f(y, threads=4)
        return lib

    with mtl.config.scope(check=setting), pytest.warns(mtl.CompileWarning, match=where):
        lib = run()
    assert any("Apple's compiler" in each.message for each in lib.warnings)
    assert y[0] in (0, 2)  # it has run


def test_others_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mtl.library(MEMORY, device="cpu").f(np.ones(4, np.float32), threads=4)
        plain = DOUBLES.replace("double", "float")
        mtl.library(plain, device="cpu", check=True).f(np.ones(4, np.float32), threads=4)


@pytest.mark.filterwarnings("ignore::metalloid.CompileWarning")
def test_findings_are_stored_with_the_text(tmp_path, monkeypatch):
    """Until an included file changes, clang reads a text only once."""
    texts = []
    read = portability.parse_dump
    monkeypatch.setattr(portability, "parse_dump", lambda text: texts.append(text) or read(text))
    header, file = tmp_path / "types.h", tmp_path / "kernels.metal"
    header.write_text("typedef double wide;\n")
    file.write_text(
        f'{HEAD}#include "types.h"\nkernel void f(device float* y) {{ y[0] = wide(y[0]); }}\n'
    )

    def warnings_of():
        lib = mtl.library(path=file, device="cpu", check=True)
        return [(Path(each.file).name, each.line, each.message) for each in lib.warnings]

    with mtl.config.scope(cache_dir=str(tmp_path / "cache")):
        first = warnings_of()
        assert [(name, line) for name, line, _ in first] == [("types.h", 1)]
        assert warnings_of() == first
        assert len(texts) == 1
        header.write_text("typedef float wide;\n")
        assert warnings_of() == []
        assert len(texts) == 2
