"""The recipe of docs/shipping.md: examples/wheel builds a wheel that needs no compiler."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "wheel"
RUN = """
import sys
sys.modules["ziglang"] = None
import numpy, ripples
numpy.save("picture.npy", ripples.ripples(48, 64, 9.0))
"""


@pytest.mark.slow
@pytest.mark.needs("the CPU")
def test_a_wheel_with_kernels(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    paths = os.pathsep.join([str(Path(mtl.__file__).parents[1]), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=project, env=environment, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == "ripples-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
        metadata = archive.read("ripples-1.0.dist-info/METADATA").decode()
    assert f"Requires-Dist: metalloid=={mtl.__version__}" in metadata
    shutil.rmtree(project)
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "installed"), paths]),
        "METALLOID_CACHE_DIR": str(tmp_path / "cache"), "METALLOID_CLANG": "/nonexistent",
        "PATH": "", "METALLOID_DEVICE": "cpu",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, check=True)
    y, x = np.mgrid[:48, :64] + 0.5
    expected = 0.5 + 0.5 * np.cos(2 * np.pi * np.hypot(x - 32, y - 24) / 9)
    np.testing.assert_allclose(np.load(tmp_path / "picture.npy"), expected, atol=1e-5)


def test_the_page_shows_the_files():
    page = (ROOT / "docs" / "shipping.md").read_text("utf-8")
    for name in ("pyproject.toml", "hatch_build.py", "src/ripples/__init__.py"):
        assert (EXAMPLE / name).read_text("utf-8") in page, name
