"""Fixtures for tests of transforms."""

import pytest

import metalloid as mtl


@pytest.fixture
def without_vendor_products():
    """Leave products to kernels on a GPU.

    cuBLAS multiplies where nothing can be fused, and needs its operands in memory: so eager and
    compiled calls may differ in the last bit there, and more values are live.
    """
    if mtl.default_device().name == "cpu":
        yield
        return
    with mtl.config.scope(products="kernels"):
        yield
