"""Fixtures of the tests of the Metal device, NVIDIA's libraries and the CPU's native runtime."""

import metal_stand_ins
import numpy as np
import nvidia_libraries
import pytest
from native_kernels import harness

import metalloid as mtl


@pytest.fixture(scope="module")
def metal():
    """A Metal device over the software binding."""
    return metal_stand_ins.metal_device()


@pytest.fixture(scope="module")
def lib(request, metal):
    """The library of the module's `SOURCE` on it."""
    return mtl.library(request.module.SOURCE, device=metal)


@pytest.fixture(scope="module", params=["stand-in", "gpu"])
def device(request):
    """A stand-in for an NVIDIA GPU, or a GPU, whose libraries are used."""
    with nvidia_libraries.opened(request.param) as card:
        yield card


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """The test kernels, written in C."""
    return harness.Kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=[1, 2, 5], ids="{} threads".format)
def threads(request, kernels):
    """The number of threads that work on a launch."""
    before = kernels.runtime.threads()
    kernels.runtime.configure(request.param)
    yield request.param
    kernels.runtime.configure(before)
