"""Compile the kernels of the sheets ahead of the tests that run them."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from sheets import HEADER

import metalloid as mtl

WORKERS = 2


def compiled(sheet):
    """The kernel of a sheet. Each is a library: a text is parsed again for each of its kernels."""
    library = mtl.library(HEADER + sheet.declarations + sheet.source, math_mode=sheet.math_mode)
    return library.function(sheet.kernel_name)


@pytest.fixture(scope="session")
def workshop(request):
    """The kernel of a sheet, by a function; the sheets that the selected tests use are compiled ahead."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker would compile the sheets of all workers
        yield functools.cache(compiled)
        return
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    sheets = [p.params["sheet"] for p in parameters if p is not None and "sheet" in p.params]
    pool = ThreadPoolExecutor(WORKERS)
    kernels = {sheet: pool.submit(compiled, sheet) for sheet in sheets}
    yield lambda sheet: kernels[sheet].result()
    pool.shutdown(cancel_futures=True)


@pytest.fixture
def kernel(workshop, sheet):
    """The kernel of the test's sheet."""
    return workshop(sheet)
