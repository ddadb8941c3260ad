"""Every example in a docstring of the installed package does what it shows."""

import doctest
import importlib
import pkgutil

import pytest

import metalloid

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(metalloid.__path__, "metalloid.")
    if not module.name.endswith("__main__")
)
#: Modules whose examples need an optional package.
NEEDS = {"metalloid.compat.torch": "torch"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_the_public_names_have_examples():
    finder = doctest.DocTestFinder()
    for name in (
        "library",
        "load",
        "metal_kernel",
        "threadgroup_memory",
        "Buffer",
        "Event",
        "Texture",
        "Sampler",
        "ArgumentBuffer",
    ):
        examples = [
            e for test in finder.find(getattr(metalloid, name), name) for e in test.examples
        ]
        assert examples, name
