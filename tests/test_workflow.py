"""The workflow on GitHub, which cannot be run here: its commands name what there is."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / ".github" / "workflows" / "tests.yml").read_text()


def test_paths_exist():
    paths = re.findall(r"(?<![\w/])tests/[\w/*.]*[\w*]", TEXT)
    assert len(paths) > 10
    assert [path for path in paths if not list(ROOT.glob(path))] == []


def test_extras_and_pythons_are_the_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name for names in re.findall(r"install '\.\[([\w,]+)\]'", TEXT) for name in names.split(",")
    }
    assert extras <= project["optional-dependencies"].keys()
    (pythons,) = re.findall(r"python: \[(.*)\]", TEXT)
    assert project["requires-python"] == f">={pythons.split(',')[0].strip(' ')}".replace('"', "")


def test_a_mac_is_asked_what_it_is_before_anything_runs():
    steps = re.findall(r"run: (?:>\n *)?(.*)", TEXT[TEXT.index("  mac:") :])
    assert steps.index("metalloid info --report") < steps.index("metalloid selftest --device metal")
    gpu = [step for step in steps if step.startswith("pytest")][1:]
    assert len(gpu) == 2
    assert all(" -ra " in step for step in gpu)  # what was skipped, and why
