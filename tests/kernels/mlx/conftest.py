"""MLX's wheel is an optional dependency of these tests."""

import pytest
from mlx_headers import include_folder


@pytest.fixture(autouse=True)
def _mlx_headers():
    if include_folder() is None:
        pytest.skip("the headers of the mlx-cpu wheel are not installed")
