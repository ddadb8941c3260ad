"""Checks of indices in evaluations whose plan has run before, on devices of their own memory."""

import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import evaluate as evaluation
from metalloid.runtime.devices import registry


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent), *sys.path])
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")
    return "own:0"


def test_wrong_indices_never_become_values(device, monkeypatch):
    values = np.random.default_rng(0).random(1000).astype(np.float32)
    x = mtl.asarray(values, device=device)

    def taken(indices):
        given = mtl.asarray(indices, device=device)
        return x[given], given

    indices = np.random.default_rng(1).integers(-1000, 1000, 100)
    result, _first = taken(indices)
    mtl.eval(result)
    monkeypatch.setattr(evaluation, "LinearizedGraph", None)  # from here on, the plan is known
    result, _second = taken(indices[::-1].copy())
    mtl.eval(result)
    np.testing.assert_array_equal(result, values[indices[::-1]])
    indices[7] = 1003
    result, _third = taken(indices)
    for _ in range(2):  # the node has no value after the first error
        with pytest.raises(IndexError, match="1003 is out of range for axis 0 of extent 1000"):
            mtl.eval(result)


def test_compiled_functions_do_not_export_values_of_wrong_indices(device):
    x = mtl.asarray(np.arange(8, dtype=np.float32), device=device)
    taken = mtl.compile(lambda x, i: x[i] * 2)
    assert taken(x, mtl.asarray([1, 7], device=device)).tolist() == [2, 14]
    result = taken(x, mtl.asarray([1, 8], device=device))
    with pytest.raises(IndexError, match="8 is out of range for axis 0 of extent 8"):
        result.__dlpack__(max_version=(1, 0))
