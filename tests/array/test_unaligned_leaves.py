"""Kernels of SIMT devices rely on aligned leaves; for others they are bound once as well."""

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


@pytest.mark.parametrize("starts", [[1, 2, 4, 1], [4, 1, 8, 3]])
def test_slices_are_evaluated_by_repeated_plans(device, monkeypatch, starts):
    values = np.random.default_rng(0).random(4096 + starts[0]).astype(np.float32)
    x = mtl.asarray(values, device=device)

    def check(start):
        result = x[start : start + 4000] * 3 - x[:4000]
        np.testing.assert_array_equal(result, values[start : start + 4000] * 3 - values[:4000])

    check(starts[0])
    monkeypatch.setattr(evaluation, "run", None)  # plans whose launches are bound in each run
    for start in starts[1:]:
        check(start)
