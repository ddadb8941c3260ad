"""A software Metal device and what is made of it once."""

import pytest
from metal_programs import KERNELS

from metalloid.compat import Metal


@pytest.fixture(scope="module")
def device():
    return Metal.MTLCreateSystemDefaultDevice()


@pytest.fixture(scope="module")
def library(device):
    library, error = device.newLibraryWithSource_options_error_(KERNELS, None, None)
    assert error is None
    return library


@pytest.fixture(scope="module")
def queue(device):
    return device.newCommandQueue()


@pytest.fixture(scope="module")
def pipeline(device, library):
    def made(name):
        function = library.newFunctionWithName_(name)
        state, error = device.newComputePipelineStateWithFunction_error_(function, None)
        assert error is None
        return state

    return made
