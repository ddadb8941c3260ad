"""Checked libraries warn of what Apple's compiler is known to refuse."""

import warnings

import numpy as np
import pytest

import metalloid as mtl

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
