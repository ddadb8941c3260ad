"""Apple's compiler takes MLX's kernels, so ``portable=True`` has nothing to say about them.

They are the judge of every rule: a finding here is a false alarm.
"""

from pathlib import Path

import pytest
from mlx_headers import include_folder
from test_headers_compile import DRIVERS

import metalloid as mtl

FOLDER = Path(__file__).parent / "drivers"
FAST = ("arange", "copy", "fft", "layer_norm", "quantized", "sdpa_vector", "sort")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
        for name in sorted({*DRIVERS.values(), "layer_norm"})
    ],
)
@pytest.mark.sample(2)
def test_no_findings(name):
    path = FOLDER / f"{name}.metal"
    mtl.library(path=path, include_dirs=[include_folder()], portable=True)
