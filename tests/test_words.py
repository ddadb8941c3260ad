"""The words of the code: standard terms of compilers and array libraries, in plain English.

docs/internals/glossary.md has the terms. A private word in an identifier, a docstring or a comment
fails here, with the term to write instead.
"""

import ast
import bisect
import functools
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "metalloid"
GLOSSARY = PACKAGE.parent.parent / "docs" / "internals" / "glossary.md"
ROOT = PACKAGE.parent.parent
#: Folders outside of the package.
FOLDERS = [ROOT / name for name in ("tools", "tests", "benchmarks", "examples")]
#: Folders that are exempt: texts of others, and texts that the array layer generated.
EXEMPT = ("tests/compat/seeds", "tests/portable/")

#: Words of identifiers, which are split at underscores and capitals, and what to write instead.
IDENTIFIER_WORDS = {
    "again": "recomputed, re-",
    "anew": "re-",
    "apart": "separate, stride",
    "behind": "after, following, dominated by",
    "beside": "adjacent, next to",
    "borrow": "import_memory",
    "borrowed": "imported",
    "bring": "load, fetch",
    "found": "match, result, or the name of the object",
    "foreign": "external, imported",
    "keep": "retain, spill, record",
    "keeps": "retain, spill, record",
    "kept": "retained, spilled, selected",
    "lend": "export",
    "lenient": "relaxed",
    "lent": "exported",
    "likely": "inferred, estimated",
    "loose": "unaligned, relaxed",
    "made": "result, or the name of the object",
    "most": "max, limit, threshold",
    "neighbour": "adjacent",
    "neighbours": "adjacent, coarsening along x",
    "outliving": "live_out",
    "parted": "divergent",
    "parting": "divergent branch",
    "partings": "divergent branches",
    "place": "index, address, location, offset, slot",
    "placed": "value_index",
    "places": "indices, addresses, locations, offsets, slots",
    "quick": "fast",
    "ragged": "tail",
    "room": "capacity, available",
    "rough": "approximate, allow_tf32",
    "rounds": "iterations",
    "scattered": "multi_row, scatter",
    "several": "coarsened, multiple",
    "side": "operand, edge, factor",
    "sides": "operands, edges, factors",
    "somebody": "caller",
    "spoils": "poison",
    "streaming": "non_temporal",
    "thin": "simt",
    "together": "uniform, convergent, combined",
    "turned": "transposed, rotated",
    "unwanted": "inactive",
    "wanted": "requested, required, expected, or the name of the object",
    "way": "edge, path, backend",
    "ways": "edges, paths",
    "who": "thread, lane, caller",
    "whole": "full, integer",
    "woven": "interleaved, aos",
}
#: Words of the compiler's identifiers; a position in a texture or grid has an origin.
COMPILER_WORDS = IDENTIFIER_WORDS | {
    "origin": "base, underlying object, incoming block, predecessor",
    "origins": "predecessors, incoming blocks",
    "part": "component, operand, chunk, sub-grid, or diverge",
    "parts": "components, operands, chunks",
}
#: Terms that are standard although they have such a word.
STANDARD_TERMS = re.compile("in_?place|at_?most|keep_?alive|not_?found", re.IGNORECASE)
#: Identifiers that are standard although they have such a word.
STANDARD_NAMES = {
    "MTLPurgeableStateKeepCurrent",
    "borrow",  # of a subtraction of long integers
    "place",  # NumPy's function
    "side",  # searchsorted, LAPACK
    "threefry_rounds",  # rounds of a cipher
}

#: Words of docstrings and comments, as regular expressions, and what to write instead.
PROSE_WORDS = {
    r"anew": "again, or a verb with re-",
    r"behind": "after, following",
    r"(?<!in )beside(?! the point)": "next to, adjacent, in addition to",
    r"in front": "before, preceding",
    r"lenient": "relaxed",
    r"lent|lends?": "made available, exported",
    r"nobody|somebody": "threads, lanes, callers; or the passive voice",
    r"parted|partings?": "divergent, divergent branches",
    r"pays": "is profitable",
    r"(?<!in[ -])(?<!takes )(?<!take )(?<!last )places?": "index, address, location, position",
    r"ragged": "tail",
    r"spoils?|spoilt": "poison",
    r"thin": "SIMT",
    r"ways?": "edge, path, method; or an adverb",
    r"whence": "from which",
    r"who|whom|whoever": "threads, lanes, callers; or the passive voice",
    r"woven": "interleaved, in the order of an array of structs",
}
_PROSE = {re.compile(rf"\b(?:{word})\b", re.IGNORECASE): term for word, term in PROSE_WORDS.items()}
_ANY_PROSE = re.compile("|".join(pattern.pattern for pattern in _PROSE), re.IGNORECASE)
#: Docstrings begin with a noun or a verb, not with a clause.
_CLAUSE = re.compile(r"(What|Of|Who|Whose|Whence|Those|Whatever|Wherever|How|(As|To|With) what)\b")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_STRING = re.compile(r'"(?:\\.|[^"\n\\])*"')


@functools.cache
def words_of(identifier: str) -> set[str]:
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


def python_identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text


def at_lines(text: str, found: Iterator[re.Match[str]]) -> Iterator[tuple[int, str]]:
    ends = [match.start() for match in re.finditer("\n", text)]
    for match in found:
        yield bisect.bisect_left(ends, match.start()) + 1, match[0]


def check_identifiers(
    names: Iterator[tuple[int, str]], private: Mapping[str, str] = IDENTIFIER_WORDS
) -> Iterator[str]:
    for line, name in names:
        for word in words_of(STANDARD_TERMS.sub("", name)) & private.keys():
            if name not in STANDARD_NAMES:
                yield f"{line}: {name}: write {private[word]} for {word!r}"


def check_prose(texts: Iterator[tuple[int, str]]) -> Iterator[str]:
    for first, text in texts:
        if not _ANY_PROSE.search(text):
            continue
        for line, content in enumerate(text.split("\n"), first):
            for pattern, term in _PROSE.items():
                for match in pattern.finditer(content):
                    yield f"{line}: {content.strip()}: write {term} for {match[0]!r}"


def check_python(text: str, stem: str, private: Mapping[str, str] = IDENTIFIER_WORDS) -> list[str]:
    """The findings of a Python file."""
    tree = ast.parse(text)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = ((t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT)
    findings = [
        *check_identifiers(iter([(1, stem), *python_identifiers(tree)]), private),
        *check_prose(comments),
        *check_prose(docstrings(tree)),
    ]
    for line, docstring in docstrings(tree):
        clause = _CLAUSE.match(docstring)
        if clause:
            first = docstring.split("\n")[0]
            findings.append(f"{line}: {first}: begin with a noun or a verb, not {clause[0]!r}")
    return findings


def check_c(text: str, stem: str, private: Mapping[str, str] = IDENTIFIER_WORDS) -> list[str]:
    """The findings of a C, C++ or MSL file."""
    code = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    code = _STRING.sub('""', re.sub(r"#include[^\n]*", "", code))
    names = at_lines(code, re.finditer(r"[A-Za-z_]\w*", code))
    return [
        *check_identifiers(iter([(1, stem), *names]), private),
        *check_prose(at_lines(text, _COMMENT.finditer(text))),
    ]


def source_files(folder: Path) -> list[Path]:
    suffixes = {".py", ".c", ".h", ".metal"}
    return [path for path in sorted(folder.rglob("*")) if path.suffix in suffixes]


@functools.cache
def files() -> list[Path]:
    """All files but this one, which has the private words."""
    return [
        path
        for folder in (PACKAGE, *FOLDERS)
        for path in source_files(folder)
        if path != Path(__file__) and not name_of(path).startswith(EXEMPT)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


@pytest.mark.parametrize("folder", sorted({p.parent for p in files()}), ids=name_of)
def test_names_and_prose_use_standard_terms(folder):
    findings = []
    private = COMPILER_WORDS if folder.is_relative_to(PACKAGE / "compiler") else IDENTIFIER_WORDS
    for path in files():
        if path.parent == folder:
            check = check_python if path.suffix == ".py" else check_c
            findings += [
                f"{name_of(path)}:{f}" for f in check(path.read_text(), path.stem, private)
            ]
    assert not findings, "\n".join(findings)


def test_names_in_emitted_text_use_standard_terms():
    findings = []
    private = {k: v for k, v in COMPILER_WORDS.items() if k != "origin"}  # of a threadgroup
    for folder in ("compiler", "backends/cpu/compile", "backends/cuda/compile"):
        for path in (PACKAGE / folder).rglob("*.py"):
            text = path.read_text()
            names = at_lines(text, re.finditer(r"[%@](?:mtl|[a-z])[\w.]+", text))
            findings += [f"{path.name}:{f}" for f in check_identifiers(names, private)]
    assert not findings, "\n".join(findings)


def test_values_and_labels_that_passes_add_use_standard_terms():
    findings = []
    for path in sorted((ROOT / "tests" / "compiler" / "passes").rglob("*.ll")):
        names = at_lines(path.read_text(), re.finditer(r"%[\w.]+", path.read_text()))
        findings += [f"{path.name}:{f}" for f in check_identifiers(names, COMPILER_WORDS)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("MOST_LANES = 32\n", "max"),
        ("def placeOf(x): ...\n", "index"),
        ("class Partings: ...\n", "divergent"),
        ("x = 1  # Nobody waits.\n", "passive voice"),
        ('def f():\n    """Return what lies behind it."""\n', "after"),
        ('def f():\n    """What a kernel needs."""\n', "begin with a noun"),
    ],
)
def test_private_words_are_found(text, term):
    (finding,) = check_python(text, "module")
    assert term in finding


@pytest.mark.parametrize(
    "text",
    [
        "at_most = round(x)  # updated in place, within 1 unit in the last place\n",
        "def searchsorted(a, v, side): ...\n",
    ],
)
def test_standard_uses_are_allowed(text):
    assert check_python(text, "module") == []


def test_private_words_in_c_are_found():
    findings = check_c("int keep; /* behind it\n nobody */ // ragged\n", "file")
    assert [f.rpartition(" for ")[2] for f in findings] == [
        "'keep'",
        "'behind'",
        "'nobody'",
        "'ragged'",
    ]


def test_terms_of_the_glossary_are_used():
    def spoken(text):
        return re.sub(r"[-_\s]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)).lower()

    text = spoken("\n".join(path.read_text() for path in source_files(PACKAGE)))
    rows = re.findall(r"^\| (?!term|-)([^|]+?) \|", GLOSSARY.read_text(), re.M)
    terms = {term.strip() for row in rows for term in re.split("[:,]", row.partition(" (")[0])}
    assert len(terms) > 100
    unused = {term for term in terms if spoken(term) not in text}
    assert not unused
