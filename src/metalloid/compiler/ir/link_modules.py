"""One module of what two have.

LLVM's own linker does not come with clang. It has little to do here: the second module is code of
ours whose functions call those of the first.
"""

from __future__ import annotations

import re

_ATTRIBUTES = re.compile(r"^attributes #(\d+) = ", re.M)
_NODE = re.compile(r"^!(\d+) = ", re.M)
_NUMBERED = re.compile(r"([#!])(\d+)\b")
_TYPE = re.compile(r'(%"?)((?:struct|class|union)\.)')
_DECLARATION = re.compile(r"^declare [^\n]*?(@[\w.$]+)\([^\n]*\n", re.M)
_NAMED = re.compile(r"^(?:declare|define) [^\n]*?(@[\w.$]+)\(", re.M)
#: Compile units of debug information.
_UNITS = re.compile(r"^!llvm\.dbg\.cu = !\{(.*)\}$", re.M)
_HELPER = re.compile(r"^define linkonce_odr [^\n]*?(@[\w.$]+)\(", re.M)
#: What a module has once; comdats are for functions that others may have as well.
_ONCE = re.compile(r"^(?:source_filename|target|!llvm\.|\$|;)[^\n]*\n", re.M)


def link_modules(first: str, second: str, prefix: str) -> str:
    """Textual IR of `first` with what `second` has more.

    Parameters
    ----------
    first, second : str
        Modules for the same target. The same name means the same function or variable, inline
        functions of C++ aside: each keeps its own.
    prefix : str
        For types and inline functions of `second`.
    """
    units = _UNITS.search(second)
    second = _ONCE.sub("", second)
    known = set(_NAMED.findall(first))
    second = _DECLARATION.sub(lambda match: "" if match[1] in known else match[0], second)
    for name in _HELPER.findall(second):
        second = re.sub(rf"{re.escape(name)}\b", f"@{prefix}.{name[1:]}", second)
    second = re.sub(
        r"^define linkonce_odr ([^\n]*?)comdat ", r"define internal \1", second, flags=re.M
    )
    second = _TYPE.sub(rf"\1{prefix}.\2", second)
    suffixes = {
        "#": 1 + max(map(int, _ATTRIBUTES.findall(first)), default=-1),
        "!": 1 + max(map(int, _NODE.findall(first)), default=-1),
    }

    def renumbered(text: str) -> str:
        return _NUMBERED.sub(lambda match: f"{match[1]}{int(match[2]) + suffixes[match[1]]}", text)

    if units is not None:
        more = renumbered(units[1])
        first = _UNITS.sub(lambda match: f"!llvm.dbg.cu = !{{{match[1]}, {more}}}", first)
    second = renumbered(second)
    return f"{first}\n{second}"
