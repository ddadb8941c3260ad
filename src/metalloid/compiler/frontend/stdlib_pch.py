"""Our metal_stdlib: stub headers for preprocessing and a precompiled header for compiling."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.compiler.toolchain.fingerprint import compiler_fingerprint
from metalloid.compiler.toolchain.target import MathMode, Target, math_flags
from metalloid.errors import MetalloidError

#: The language: C++17 in SYCL's device mode, which gives plain C++ the address-space rules of MSL.
LANGUAGE_FLAGS = (
    "-x", "c++", "-std=c++17", "-O2", "-nostdinc", "-fdeclspec", "-ffreestanding",
    "-fno-sanitize=all", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
    "-fno-strict-aliasing", "-fno-math-errno", "-fsigned-char",
    "-ftemplate-depth=2048", "-fbracket-depth=1024", "-ferror-limit=0",
    "-fno-color-diagnostics", "-fno-caret-diagnostics", "-fno-diagnostics-show-note-include-stack",
    "-fno-elide-type",
    "-Xclang", "-fsycl-is-device",
    # Without an auxiliary triple __bf16 crashes the name mangler; without the second option
    # functions that differ by address space only get the same name on NVIDIA.
    "-Xclang", "-aux-triple", "-Xclang", "x86_64-unknown-linux-gnu",
    "-Xclang", "-faddress-space-map-mangling=no",
    # half arithmetic rounds after every operation, as on a GPU
    "-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none",
)  # fmt: skip


#: Texts with tensors are compiled as C++23, which is like Metal 4 in these points: descriptors of
#: operations are template arguments, and ``t[i, j]`` is an element. So are those that name array<T,
#: N>, whose elements are in the space of the object: before C++23 no member function can know it.
#: Others are spared its changes.
_NEWER_FLAGS = ("-std=c++23",)
_ARRAY = re.compile(r"\barray\s*<")
_TENSOR_INCLUDE = re.compile(
    r'^# 1 "[^"\n]*/(?:metal_(?:cooperative_)?tensor|MetalPerformancePrimitives/\w+\.h)" 1$', re.M
)


def language_flags(text: str) -> tuple[str, ...]:
    """Flags of the language of a text, preprocessed or lowered."""
    is_newer = uses_tensors(text) or _ARRAY.search(text) is not None
    return (*LANGUAGE_FLAGS, *(_NEWER_FLAGS if is_newer else ()))


def uses_tensors(text: str) -> bool:
    """Whether a text, preprocessed or lowered, includes a header of Metal 4's tensors."""
    return _TENSOR_INCLUDE.search(text) is not None


def include_folder() -> Path:
    """Folder of our headers inside the package."""
    return Path(__file__).parents[2] / "msl" / "include"


@functools.cache
def toolchain_digest() -> str:
    """Changes when clang, our headers or the code that drives them do; part of every cache key.

    Apple GPUs have a compiler of their own: what drives that makes no code here.
    """
    contents: list[str | bytes] = [compiler_fingerprint()]
    package = Path(__file__).parents[2]
    for folder in ("msl", "compiler", "backends"):
        for path in sorted((package / folder).rglob("*")):
            if path.suffix in (".py", ".h", ".txt") and path.parent.name != "metal":
                contents += [path.relative_to(package).as_posix(), path.read_bytes()]
    return digest(*contents)


def stub_folder(cache: Cache) -> Path:
    """Folder with a header of each name of Metal's own, empty unless it defines macros.

    While the user's text is preprocessed only macros matter, and those of ``macros.h`` are there
    before its first line; the declarations come from the precompiled header.
    """
    names = (include_folder() / "header_names.txt").read_text().split()
    headers = dict.fromkeys(names, "")
    for name in ("TargetConditionals.h",):
        headers[name] = (include_folder() / name).read_text()
    key = digest("stub headers", *itertools.chain(*headers.items()))
    files = cache.load(key) or cache.save(key, headers)
    return files[names[0]].parent


def precompiled_header(cache: Cache, target: Target, math_mode: MathMode, text: str = "") -> Path:
    """The compiled standard library for `target`; made on first use (about half a second).

    Parameters
    ----------
    text : str
        What is to be compiled with it, preprocessed or lowered.
    """
    flags = [*language_flags(text), *target.flags, *math_flags(math_mode)]
    headers = [target.entry_header.name, *(["tensor_ops.h"] if uses_tensors(text) else [])]
    folder = include_folder()  # messages name it, and are told apart by it
    key = digest("prelude", toolchain_digest(), str(folder), target.identity, *flags, *headers)
    files = cache.load(key)
    if files is None:
        # Flattened into one text: a precompiled header remembers the times of the files it read
        # and dies when a reinstallation touches them.
        folders = [f"-I{folder}", f"-I{target.entry_header.parent}"]
        flat = checked(
            clang.run(
                ["clang", *flags, *folders, "-E", "-frewrite-includes", "-"],
                "".join(f'#include "{header}"\n' for header in headers),
            )
        )
        flags[flags.index("c++")] = "c++-header"
        header = checked(clang.run(["clang", *flags, "-w", "-o", "-", "-"], flat.output))
        files = cache.save(key, {"prelude.pch": header.output})
    return files["prelude.pch"]


def checked(outcome: clang.Outcome) -> clang.Outcome:
    """The outcome of compiling our own code, which has no errors."""
    if outcome.status != 0:
        raise MetalloidError(
            "[compiler] the Metal standard library does not compile with "
            f"{clang.executable()}. This is a bug of metalloid or an unknown compiler version.\n"
            + outcome.messages[:2000]
        )
    return outcome
