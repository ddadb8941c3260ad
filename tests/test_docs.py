"""Links of the README and of docs/ lead somewhere, and the files that the pages name exist."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
_FILE = re.compile(r"`([\w./*]+/[\w*]+\.(?:py|c|h|metal))`")
#: Names of files that were moved, or that belong to other projects.
_NAMES_OTHER_FILES = ("docs/internals/renames.md", "docs/evidence/array-api.md")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links(page):
    for path, anchor in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in _anchors(target), f"{path}#{anchor}"


def test_files_that_pages_name():
    folders = ("src", "tests", "benchmarks", "examples", "tools")
    files = ["/" + str(f) for folder in folders for f in (ROOT / folder).rglob("*.*")]
    for page in PAGES:
        if _name(page) not in _NAMES_OTHER_FILES:
            for name in _FILE.findall(page.read_text("utf-8")):
                assert any(fnmatch(f, "*/" + name) for f in files), f"{_name(page)}: {name}"
