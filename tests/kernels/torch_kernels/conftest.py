"""Torch's wheel is an optional dependency of these tests."""

import pytest
from torch_headers import driver, include_folder


@pytest.fixture(autouse=True)
def _torch_headers():
    if include_folder() is None:
        pytest.skip("the headers of torch are not installed")


@pytest.fixture
def library(request):
    """The driver that the test module names."""
    return driver(request.module.DRIVER)
