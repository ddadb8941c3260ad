"""What tests of the CPU's native runtime share."""

import pytest
from native_kernels import harness


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """The test kernels, written in C."""
    return harness.Kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=[1, 2, 5], ids="{} threads".format)
def threads(request, kernels):
    """How many threads work on a launch."""
    before = kernels.runtime.threads()
    kernels.runtime.configure(request.param)
    yield request.param
    kernels.runtime.configure(before)
