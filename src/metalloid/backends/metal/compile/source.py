"""The one text that Metal's compiler is given, which reads no files: with what it includes."""

from __future__ import annotations

import re

from metalloid.compiler.frontend.stdlib_pch import include_folder
from metalloid.compiler.frontend.translate import with_includes
from metalloid.compiler.frontend.unit import Options
from metalloid.compiler.toolchain.cache import Cache

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
#: clang's expansion of an include of an empty file, as Metal's own headers are here: the directive
#: itself if the file exists, else line markers only.
_EXPANDED = re.compile(
    r"^#if defined\(__CLANG_REWRITTEN_INCLUDES\) (/\* \S+ expanded by -frewrite-includes \*/)\n"
    r"(.*\n)#else \1\n(?:# .*\n)*#endif \1\n",
    re.M,
)
#: What line markers say of entering and leaving files; some were just left out.
_FLAGS = re.compile(r'^(# \d+ "[^"\n]*")(?: \d)+$', re.M)


def inline_includes(source: str, file: str, options: Options, cache: Cache) -> str:
    """`source` with the files it includes; itself if those are Metal's own only.

    Parameters
    ----------
    file : str
        Its path; quoted includes are searched in its folder.
    """
    own = set((include_folder() / "header_names.txt").read_text().split())
    if all((quoted or angled) in own for quoted, angled in _INCLUDE.findall(source)):
        return source

    def restored(match: re.Match[str]) -> str:
        (names,) = _INCLUDE.findall(match[2])
        return match[2] if own.intersection(names) else match[0]

    text = _EXPANDED.sub(restored, with_includes(source, file, options, cache))
    return _FLAGS.sub(r"\1", text).replace('"<stdin>"', f'"{file}"')
