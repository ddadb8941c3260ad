"""The tutorials, and some pages for users, do what they show."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))

from run_page import run_page  # noqa: E402

TUTORIALS = ROOT / "docs/internals/tutorials"
PAGES = [
    ROOT / "docs/debugging.md",
    ROOT / "docs/kernels.md",
    ROOT / "docs/kernel-gradients.md",
]
#: Slow ones, which .ci/run runs, too.
LONG_PAGES = [
    ROOT / "docs/profiling.md",
    ROOT / "docs/scaling.md",
    *sorted(page for page in TUTORIALS.glob("*.md") if page.name != "README.md"),
]
#: They run with the cache of all tests, which costs less.
OTHERS = [
    ROOT / f"docs/{name}.md"
    for name in (
        "arrays", "ci", "concurrency", "devices", "migrate", "numpy", "nvidia", "opencl",
        "performance", "shipping", "torch", "transforms",
    )
]  # fmt: skip
#: It replaces `mlx.core` in its process.
MLX = ROOT / "docs/mlx.md"
#: Pages with pictures, which `tools/build_site.py` runs, too.
STEPS = sorted((ROOT / "docs/tutorial").glob("[0-9]*.md"))


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize(
    "page",
    [*PAGES, *(pytest.param(page, marks=pytest.mark.slow) for page in LONG_PAGES)],
    ids=lambda page: page.stem,
)
def test_tutorial(page, fresh_cache):
    run_page(page)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.stem)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.slow
def test_mlx_page():
    pytest.importorskip("mlx")
    subprocess.run([sys.executable, ROOT / "tools/run_page.py", MLX], check=True, timeout=300)


def test_no_page_is_left_out():
    pages = {
        page for page in (ROOT / "docs").rglob("*.md") if "\n```python\n" in page.read_text("utf-8")
    }
    assert pages == {*PAGES, *LONG_PAGES, *OTHERS, *STEPS, MLX}


@pytest.mark.slow
@pytest.mark.parametrize("page", STEPS, ids=lambda page: page.stem)
def test_step(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)
    assert list(tmp_path.glob("*.png"))
