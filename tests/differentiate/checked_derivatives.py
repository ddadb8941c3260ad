"""A plugin of pytest: launches of derivatives are checked, and their texts must be portable."""

from functools import partial

import pytest

import metalloid as mtl
from metalloid.differentiate import AdjointKernel, TangentKernel, derived


def checked(launch):
    """The method, which raises what the sanitizer finds."""

    def checked_launch(*args, **options):
        with mtl.config.scope(check=True):
            return launch(*args, **options)

    return checked_launch


def check_derivatives(monkeypatch):
    monkeypatch.setattr(derived, "library", partial(mtl.library, portable=True))
    monkeypatch.setattr(AdjointKernel, "launch", checked(AdjointKernel.launch))
    monkeypatch.setattr(TangentKernel, "_run", checked(TangentKernel._run))


@pytest.fixture(autouse=True)
def _checked_derivatives(monkeypatch):
    check_derivatives(monkeypatch)
