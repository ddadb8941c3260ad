"""MLX's wheel is an optional dependency of these tests."""

import pytest
from mlx_headers import include_folder

import metalloid as mtl


@pytest.fixture(autouse=True)
def _mlx_headers():
    if include_folder() is None:
        pytest.skip("the headers of the mlx-cpu wheel are not installed")


@pytest.fixture
def relaxed_barriers():
    """Some kernels of MLX rely on barriers that threads which have returned need not reach."""
    with mtl.config.scope(strict_barriers=False):
        yield
