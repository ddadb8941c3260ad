"""The names of the tests' folders.

pytest puts the folder of every test module on the import path. A folder there counts as a package of its
name where none is installed, so that `importorskip("torch")` would find a folder called torch.
"""

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent


def optional_packages():
    """Names that tests import only where they are installed."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    requirements = [text for extra in project["optional-dependencies"].values() for text in extra]
    names = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in requirements}
    for path in TESTS.rglob("*.py"):
        names |= set(re.findall(r"(?:importorskip|find_spec)\(\"(\w+)", path.read_text()))
    return names


def test_no_folder_has_the_name_of_an_optional_package():
    packages = optional_packages()
    assert {"torch", "mlx", "scipy", "numba"} <= packages
    on_the_path = {path.parent for path in TESTS.rglob("test_*.py")} | {TESTS}
    folders = {path.name for folder in on_the_path for path in folder.iterdir() if path.is_dir()}
    assert packages & folders == set()
