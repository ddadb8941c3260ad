"""Files that a release needs, and that it is built the same each time."""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import metalloid

ROOT = Path(__file__).parent.parent


def test_release_names_what_there_is():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    for path in re.findall(
        r"python (tools/\S+)", text + (ROOT / ".github/workflows/docs.yml").read_text()
    ):
        assert (ROOT / path).is_file()
    assert "id-token: write" in text
    assert "password" not in text  # trusted publishing


def test_the_recipe_has_the_dependencies_and_the_version():
    recipe = (ROOT / "tools/conda/recipe.yaml").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {
        match[1].replace("-", "_"): match[2]
        for text in project["dependencies"]
        if (match := re.match(r"([\w-]+)(>=[\d.]+)$", text))
    }
    run = recipe[recipe.index("  run:") :]
    listed = {a.replace("-", "_"): b for a, b in re.findall(r"- ([\w-]+) (>=[\d.]+)", run)}
    assert needed.items() <= listed.items()
    assert f'version: "{metalloid.__version__}"' in recipe


def test_the_changelog_has_this_version():
    assert f"\n## {metalloid.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_wheels_are_reproducible(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    hashes = set()
    for name in ("a", "b"):
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-d",
            str(tmp_path / name),
        ]
        environment = {"SOURCE_DATE_EPOCH": "1700000000", "PATH": "/usr/bin:/bin", "TZ": name}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        (wheel,) = (tmp_path / name).glob("*.whl")
        hashes.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(hashes) == 1
