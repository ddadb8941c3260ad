"""Configuration of Sphinx. `tools/build_site.py` generates pages and pictures, and then runs it.

The pages are also read in the repository. Their links to files outside of docs/ become links to the
repository here, and the pictures that a tutorial saves are shown after the code that does so.
"""

import posixpath
import re
from pathlib import Path

import metalloid

REPOSITORY = "https://github.com/metalloid/metalloid"

project = "metalloid"
author = "the authors of metalloid"
copyright = "the authors of metalloid"
release = version = metalloid.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"metalloid {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"  # NumPy's docstrings name the types
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
suppress_warnings = [
    "ref.python",  # parameters such as `shape` are attributes of several classes
    "misc.highlighting_failure",  # LLVM's IR with dots for what is left out
]

_LINK = re.compile(r"(?<=\]\()(?!https?://)([^)#\s]+)")
_CODE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"\.save(?:fig)?\(\"([\w.]+)\"")


def _link(folder: str):
    def replaced(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        if path.startswith("docs/"):
            return match[1]
        kind = "blob" if "." in posixpath.basename(path) else "tree"
        return f"{REPOSITORY}/{kind}/main/{path}"

    return replaced


def _with_pictures(match: re.Match[str]) -> str:
    pictures = [f"\n![](/generated/tutorial/{name})\n" for name in _SAVED.findall(match[1])]
    return match[0] + "".join(pictures)


def _read(app, name: str, source: list[str]) -> None:
    if Path(app.env.doc2path(name)).suffix != ".md":
        return
    text = _LINK.sub(_link(posixpath.dirname(name)), source[0])
    source[0] = _CODE.sub(_with_pictures, text) if name.startswith("tutorial/") else text


def _docstring(app, what, name, value, options, lines: list[str]) -> None:
    """References of one docstring have the same numbers as those of others on the page."""
    for k, line in enumerate(lines):
        line = re.sub(r"^(\s*)\.\. \[(\d+)\] ", r"\1\2. ", line)
        lines[k] = re.sub(r"(\[\d+\])_", r"\1", line).replace("|z|", r"\|z\|")


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
