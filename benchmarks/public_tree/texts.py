"""Which Metal files a repository has, and which of them are MSL as they stand."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import metalloid as mtl

#: Names of kernels in a text that nothing could compile.
_KERNEL = re.compile(r"^\s*(?:\[\[[^\]]*\]\]\s*)?kernel\s+(?:void|\[\[)|^kernel\b", re.M)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_MISSING_FILE = re.compile(r"'([^']+)' file not found")
_METAL_HEADER = re.compile(r'^\s*#\s*(?:include|import)\s*[<"](?:metal_\w+|simd/simd\.h)[>"]', re.M)
_INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*"([^"]+)"', re.M)
_MISSING_NAME = re.compile(
    r"(?:unknown type name|undeclared identifier|no template named|undeclared template struct) "
    r"'(\w+)'"
)
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_ANOTHER_PIPELINE = re.compile(
    r"the render pipeline|ray tracing|mesh shaders|runs compute kernels only"
)

#: What is wrong in a text itself, by the end of its path: Apple's compiler refuses these as well.
_WRONG = {
    "additive/additive_fft_gf8.metal": "uses a variable that it never declares",
    "constraint/fused_circle_ntt_constraint.metal": "defines a constant twice, unless the host "
    "removes its includes",
    "msl/vertex-pulling-transform.msl": "converts a float4 to float3",
}
#: Names that the host's library declares before the texts.
_OF_THE_HOST = {"bfloat16_t"}  # MLX's


class Kernel(NamedTuple):
    """One kernel: its file, its name, and the function or template that it comes from."""

    file: str
    name: str
    function: str
    definition: str


class Text(NamedTuple):
    """A Metal file.

    Attributes
    ----------
    kernels : list of Kernel
        If it is MSL as it stands and compiles as a whole.
    others : int
        Kernels, as far as they can be counted, of a text that is not compiled.
    not_msl : str
        Why it is not MSL as it stands.
    refusal : str
        Why it is not compiled although it is.
    """

    kernels: list[Kernel]
    others: int = 0
    not_msl: str = ""
    refusal: str = ""


def files(tree: Path) -> list[str]:
    """Metal files of a repository, relative to it."""
    paths = (path for end in ("metal", "msl") for path in tree.rglob(f"*.{end}"))
    return sorted(path.relative_to(tree).as_posix() for path in paths if path.is_file())


def commit(tree: Path) -> str:
    """The commit that is checked out, for people."""
    command = ["git", "-C", str(tree), "log", "-1", "--format=%h (%cs)"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def library(tree: Path, file: str) -> mtl.Library:
    """Compile a file; what it includes is searched in the whole repository, as its build does.

    Raises
    ------
    CompileError
    """
    path = tree / file
    folders = [folder for folder in path.parents if folder.is_relative_to(tree)]
    while True:
        try:
            return mtl.library(path=path, include_dirs=folders)
        except mtl.CompileError as error:
            missing = _MISSING_FILE.search(str(error))
            more = missing and _folder_of(tree, missing[1])
            if not more or more in folders:
                raise
            folders.append(more)


def _folder_of(tree: Path, include: str) -> Path | None:
    """The folder from which a repository's file is included."""
    for path in sorted(tree.rglob(Path(include).name)):
        if path.is_file() and path.as_posix().endswith(f"/{include}"):
            return Path(path.as_posix().removesuffix(f"/{include}"))
    return None


def read(tree: Path, file: str) -> Text:
    """A file's kernels, or why it has none."""
    try:
        entries = library(tree, file)._unit.kernels.values()
    except mtl.CompileError as error:
        source = (tree / file).read_text("utf-8", "replace")
        count = len(_KERNEL.findall(_COMMENT.sub("", source)))
        reason = _not_msl(tree, file, source, str(error))
        return Text([], count, not_msl=reason, refusal="" if reason else first_line(error))
    return Text([
        Kernel(
            file, entry.name, entry.expression.partition("<")[0],
            f"{Path(entry.file).resolve().as_posix()}:{entry.line}",
        )
        for entry in entries
    ])  # fmt: skip


def _not_msl(tree: Path, file: str, source: str, messages: str) -> str:
    """Why a text that does not compile is not MSL as it stands; empty if it should compile."""
    for end, reason in _WRONG.items():
        if file.endswith(end):
            return f"wrong in the source: {reason}"
    if _ANOTHER_PIPELINE.search(messages):
        return "vertex or fragment functions, or ray tracing"
    if not _METAL_HEADER.search(_with_includes(tree / file, source)):
        return "a fragment: the host puts Metal's headers in front"
    return completed_by_host(tree, messages)


def completed_by_host(tree: Path, messages: str) -> str:
    """Whether what a compiler misses comes from the host, as a reason; empty if it does not."""
    missing = _MISSING_NAME.search(messages)
    if missing and _is_of_the_host(tree, missing[1]):
        return "a fragment: the host puts other texts or macros in front"
    return ""


def _with_includes(path: Path, source: str) -> str:
    texts = [source]
    for name in _INCLUDE.findall(source):
        included = path.parent / name
        if included.is_file():
            texts.append(included.read_text("utf-8", "replace"))
    return "\n".join(texts)


def _is_of_the_host(tree: Path, name: str) -> bool:
    """Whether a name is a macro, or another text of the repository defines it."""
    if _MACRO.match(name) or name in _OF_THE_HOST:
        return True
    definition = re.compile(
        rf"\b(?:struct|class|using|define)\s+{name}\b|\btypedef\b.*\b{name};|"
        rf"\binline\b[^;=]*\b{name}\("
    )
    return any(
        definition.search((tree / file).read_text("utf-8", "replace")) for file in files(tree)
    )


def first_line(error: Exception) -> str:
    """The message of an error, without the location."""
    line = str(error).strip().partition("\n")[0]
    return re.sub(r"^\S+:\d+:\d+: ", "", line)


def repeated(kernels: list[Kernel]) -> list[Kernel]:
    """Kernels that several files include, once each."""
    count: Counter[tuple[str, str]] = Counter()
    repeated_kernels = []
    for kernel in kernels:
        key = kernel.name, kernel.definition
        count[key] += 1
        if count[key] == 1:
            repeated_kernels.append(kernel)
    return repeated_kernels
