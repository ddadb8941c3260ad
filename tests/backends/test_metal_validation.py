"""Accesses that Metal checks with ``bounds="checked"``: by its shader validation, of macOS 15."""

import dataclasses
import types
import warnings

import numpy as np
import pytest
from metal_stand_ins import metal_device

import metalloid as mtl
from metalloid.backends.metal.runtime.validation import reports_of
from metalloid.compat import Metal

SOURCE = """
kernel void gather(device const float* x, device const int* index, device float* y,
                   uint i [[thread_position_in_grid]])
{
    y[i] = x[index[i]];
}
kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
"""
INDEX = np.array([0, 1 << 24, 1, 1 << 25], np.int32)  # far beyond the pages of the buffer
NEWER_THAN = "MTLShaderValidationEnabled"


@pytest.fixture
def metal():
    return metal_device()


def gathered(lib, x, y):
    return lib.gather(x, INDEX, y, threads=4, wait=False)


def test_accesses_outside_are_errors_of_their_launch(metal):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib = mtl.library(SOURCE, bounds="checked", device=metal)
    x, y = np.arange(4, dtype=np.float32), np.full(4, 5, np.float32)
    doubled = np.ones(4, np.float32)
    other = lib.twice(doubled, threads=4, wait=False)
    with pytest.raises(mtl.KernelFault) as raised:
        gathered(lib, x, y).wait()
    other.wait()
    error = raised.value
    assert (error.kernel, error.file, error.line) == ("gather", "program_source", 5)
    assert str(error) == (
        "[gather] program_source:5: read of index 16777216 of 'x', which has 64 elements\n"
        "        y[i] = x[index[i]];"
    )
    assert doubled.tolist() == [2, 2, 2, 2]
    lib.twice(doubled, threads=4).wait()
    assert doubled.tolist() == [4, 4, 4, 4]


def test_without_it_the_command_buffer_fails(metal):
    lib = mtl.library(SOURCE, device=metal)
    with pytest.raises(mtl.KernelFault) as raised:
        gathered(lib, np.zeros(4, np.float32), np.zeros(4, np.float32)).wait()
    assert raised.value.line is None


def test_older_systems_cannot_check():
    newer = set(Metal.__all__) - {NEWER_THAN}
    module = types.SimpleNamespace(**{name: getattr(Metal, name) for name in newer})
    metal = metal_device()
    metal._programs._binding = dataclasses.replace(metal.binding, module=module)
    with pytest.warns(mtl.CompileWarning, match="set METALLOID_VALIDATE=1 before"):
        lib = mtl.library(SOURCE, bounds="checked", device=metal)
    x = np.ones(4, np.float32)
    lib.twice(x, threads=4).wait()
    assert x.tolist() == [2, 2, 2, 2]
    double = mtl.ElementwiseKernel("float x", "float y", "y = 2 * x", "twice", bounds="checked")
    with pytest.warns(mtl.CompileWarning, match="do not check their accesses") as caught:
        double(*(mtl.Buffer(np.ones(3, np.float32), metal) for _ in range(2)))
    assert caught[0].filename == __file__


def test_pipelines_may_refuse(monkeypatch):
    monkeypatch.setattr(
        "metalloid.compat.Metal.pipeline.MTLComputePipelineState.shaderValidation",
        lambda self: Metal.MTLShaderValidationDisabled,
    )
    with pytest.warns(mtl.CompileWarning, match="do not check their accesses"):
        mtl.library(SOURCE, bounds="checked", device=metal_device())


class Log:
    """As Metal writes it."""

    def __init__(self, name, line, column):
        self._name, self._line, self._column = name, line, column

    def function(self):
        return self._name and types.SimpleNamespace(name=lambda: self._name)

    def debugLocation(self):
        line, column = self._line, self._column
        return line and types.SimpleNamespace(line=lambda: line, column=lambda: column)

    def description(self):
        return "Invalid device load"


def test_reports_with_and_without_names_and_lines(metal):
    lib = mtl.library(SOURCE, bounds="checked", device=metal)
    x = mtl.Buffer(np.ones(4, np.float32), metal)
    lib.twice(x, threads=4, wait=False)
    commands = metal._open.commands

    def report(*logs):
        return reports_of(types.SimpleNamespace(logs=lambda: logs), commands)

    assert report() == report(Log("other", 1, 1)) == {}
    error = report(Log("twice", 5, 12), Log("twice", 5, 12))["twice"].error
    assert str(error) == (
        "[twice] program_source:5: Invalid device load (and 1 more)\n"
        "        y[i] = x[index[i]];\n"
        "               ^"
    )
    error = report(Log(None, None, None))["twice"].error
    assert (str(error), error.line) == ("[twice] Invalid device load", None)
