"""Devices of the software Metal and of metalcompute, and what is made of them once."""

import pytest
from metal_programs import KERNELS
from metalcompute_kernels import KERNELS as METALCOMPUTE_KERNELS

import metalloid.compat.metalcompute as mc
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
    def create(name):
        function = library.newFunctionWithName_(name)
        state, error = device.newComputePipelineStateWithFunction_error_(function, None)
        assert error is None
        return state

    return create


@pytest.fixture(scope="module")
def dev():
    return mc.Device()


@pytest.fixture(scope="module")
def kernel(dev):
    return dev.kernel(METALCOMPUTE_KERNELS)
