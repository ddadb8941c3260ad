"""The one text that Metal's compiler is given: a file with what it includes put in its place.

``newLibraryWithSource`` reads no files. Everything else is left to it: macros, conditions, and the
headers of Metal itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from metalloid.compiler.frontend import PROGRAM_SOURCE

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>).*$', re.M)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.M)


def whole_text(source: str, file: str, include_dirs: Sequence[str]) -> str:
    """`source` with the files it includes; itself if it includes none.

    Parameters
    ----------
    file : str
        Its own name, beside which quoted names are searched, or `PROGRAM_SOURCE`.
    include_dirs : sequence of str
        Folders searched for both forms of ``#include``.
    """
    return _expanded(source, file, [Path(folder) for folder in include_dirs], (file,))


def _expanded(text: str, file: str, folders: list[Path], within: tuple[str, ...]) -> str:
    if not _INCLUDE.search(text):
        return text
    beside = [] if file == PROGRAM_SOURCE else [Path(file).parent]

    def replaced(match: re.Match[str]) -> str:
        quoted, angled = match.groups()
        searched = beside + folders if quoted else folders
        found = next((f / (quoted or angled) for f in searched
                      if (f / (quoted or angled)).is_file()), None)  # fmt: skip
        if found is None:
            return match[0]  # Metal's own, or an error that Metal will tell
        name = str(found)
        if name in within:
            return ""  # a guard of its own ends it
        inner = _expanded(found.read_text("utf-8"), name, folders, (*within, name))
        if _ONCE.search(inner):
            guard = "METALLOID_ONCE_" + re.sub(r"\W", lambda c: f"_{ord(c[0]):x}_", name)
            inner = _ONCE.sub("", inner)
            inner = f'#ifndef {guard}\n#define {guard}\n#line 1 "{name}"\n{inner}\n#endif'
        else:
            inner = f'#line 1 "{name}"\n{inner}'
        line = text.count("\n", 0, match.start()) + 2
        return f'{inner}\n#line {line} "{file}"'

    return _INCLUDE.sub(replaced, text)
