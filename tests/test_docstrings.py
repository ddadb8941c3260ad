"""Every example in a docstring of the installed package does what it shows."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import metalloid

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import build_site

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(metalloid.__path__, "metalloid.")
    if not module.name.endswith("__main__")
)
#: Modules whose examples need an optional package.
NEEDS = {"metalloid.compat.torch": "torch"}
#: Modules whose examples replace others, which tests in this process may have imported.
ALONE = ("metalloid.compat.mlx.installation",)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.sample(200)  # .ci/run runs the others, too
def test_examples(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    if name in ALONE:
        code = f"import doctest, {name} as module; assert not doctest.testmod(module).failed"
        subprocess.run([sys.executable, "-c", code], check=True)
        return
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", build_site.MODULES)
def test_all_public_names_have_examples(name):
    assert build_site.names_without_examples(name) == []
    known = {f"{name}.{public}" for public, _ in build_site.public_names(name)}
    listed = {n for n in build_site.more_examples() if n.rpartition(".")[0] == name}
    assert listed <= known


@pytest.mark.slow
def test_examples_of_the_reference():
    build_site.run_examples()
