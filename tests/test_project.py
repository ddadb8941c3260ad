"""Files that a release needs, and that it is built the same each time."""

import hashlib
import os
import re
import shutil
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
    assert f'env.get("METALLOID_VERSION", default="{newest_version()}")' in recipe
    assert "METALLOID_VERSION=" in (ROOT / ".github/workflows/release.yml").read_text()


def test_the_recipe_renders():
    """With rattler-build's own parser; a build needs conda's channels."""
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    recipe = rattler_build.Stage0Recipe.from_file(str(ROOT / "tools/conda/recipe.yaml"))
    (variant,) = recipe.render(rattler_build.VariantConfig())
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "metalloid", "version": newest_version()}
    assert rendered["build"]["noarch"] == "python"
    assert "numpy >=2.0" in rendered["requirements"]["run"]


def test_workflows_fit_githubs_schema():
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    check = [sys.executable, "-m", "check_jsonschema"]
    check += ["--builtin-schema", "vendor.github-workflows"]
    workflows = sorted(map(str, (ROOT / ".github/workflows").glob("*.yml")))
    assert len(workflows) == 3
    done = subprocess.run([*check, *workflows], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def newest_version():
    """The first version that the changelog names."""
    return re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]


def test_the_changelog_has_this_version():
    released = [int(part) for part in metalloid.__version__.split(".")[:2]]
    assert released <= [int(part) for part in newest_version().split(".")[:2]]


@pytest.mark.slow
@pytest.mark.parametrize(("tags", "expected"), [
    ([], "0.1.dev1"), (["v1.2.0"], "1.2.0"), (["v1.2.0", None], "1.2.1.dev1"),
])  # fmt: skip
def test_the_version_is_that_of_the_tag(tmp_path, tags, expected):
    """A small package with the settings of this project."""
    pytest.importorskip("hatch_vcs", reason="hatch-vcs is not installed")
    (tmp_path / "src/metalloid").mkdir(parents=True)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    (tmp_path / "src/metalloid/__init__.py").touch()

    def git(*arguments):
        user = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *user, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    for tag in tags:
        git(*(("tag", tag) if tag else ("commit", "--allow-empty", "-m", "later")))
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "version"], cwd=tmp_path, check=True,
        capture_output=True, text=True, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.stdout.strip() == expected


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
