"""MLX's own tests of `grad`, `vmap` and `compile`, over the arrays of this package.

They are read from a checkout of MLX, ``METALLOID_MLX_TREE``; `mlx_names` gives them MLX's names.
"""

import importlib
import os
import subprocess
import sys
import unittest
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

#: Tests that fail, and why. The others must pass.
DIFFERENCES = {
    "test_autograd": {
        "test_jvp_with_partly_traced_inputs": "the remainder has a derivative here",
        "test_autograd_types": "gradients with respect to integers are refused",
    },
    "test_vmap": {
        "test_broadcast_axes_vmap": "shapeless: a broadcast extent of 1 that grows is traced again",
        "test_vmap_masked_scatter": "NumPy's rule: as many new elements as the mask selects",
    },
    "test_compile": {
        "test_compile_donates_input_buffer": "memory of arguments is not used again",
        "test_shapeless_compile_with_reshape": "an error in MLX is the function's result here",
        "test_compile_without_captured_inputs": "arrays outside are constants",
        "test_unsupported_input_types": "hashable arguments are constants",
        "test_compile_different_log_bases": "numpy.allclose of arrays is a TypeError",
        "test_compile_output_with_siblings": "no mx.fast",
        "test_enable_disable": "no export_to_dot",
        "test_shapeless_compile_gather_mm": "no gather_mm",
        "test_shapeless_compile_gather_qmm": "no quantize",
        "test_shared_broadcast": "no export_to_dot",
    },
}


@pytest.fixture(scope="module")
def folder():
    """MLX's tests, in a process's path of their own."""
    tree = os.environ.get("METALLOID_MLX_TREE", "")
    tests = Path(tree) / "python" / "tests"
    if not tree or not tests.exists():
        pytest.skip("METALLOID_MLX_TREE is missing: a checkout of MLX with python/tests")
    return tests


@pytest.mark.parametrize("module", DIFFERENCES)
def test_module(module, folder):
    command = [sys.executable, __file__, str(folder), module]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    failed = set(ran.stdout.split()[1:])
    assert failed == set(DIFFERENCES[module]), ran.stderr[-5000:]


def main(folder, module):
    """Run a module of MLX's tests; print their number and the names of those that fail."""
    import mlx_names

    mlx_names.install()
    sys.path.insert(0, folder)
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    names = {
        getattr(test, "test_case", test)._testMethodName
        for test, _ in (*result.failures, *result.errors)
    }
    print(result.testsRun, *sorted(names))


if __name__ == "__main__":
    main(*sys.argv[1:])
