"""MLX's wheel is an optional dependency of these tests."""

from pathlib import Path

import pytest
from mlx_headers import include_folder

import metalloid as mtl

#: Files with many instances of the same kernels. Every second one is in the slow suite.
MANY = ("test_elementwise_run.py", "test_reductions_run.py", "test_scans_and_sorts_run.py")


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    many = [item for item in items if item.path.name in MANY and item.path.parent == here]
    for item in many[1::2]:
        item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _mlx_headers():
    if include_folder() is None:
        pytest.skip("the headers of the mlx-cpu wheel are not installed")


@pytest.fixture
def lenient_barriers():
    """Some kernels of MLX rely on barriers that threads which have returned need not reach."""
    with mtl.config.scope(strict_barriers=False):
        yield
