"""Damaged texts: an error with its line, or a library; never a crash, a hang, another exception."""

import functools
import importlib.util
import os
import random
from pathlib import Path

import pytest

import metalloid as mtl
from metalloid.msl.tokens import TokenStream

SOURCES = sorted([*Path("examples").glob("*.metal"), *Path("tests/errors").glob("*.metal"),
                  Path("src/metalloid/cli/julia.metal")])  # fmt: skip

#: Files of real code: below the headers of two packages, and in a folder that METALLOID_GGML names.
REAL = {
    "mlx": "mlx/backend/metal/kernels/**/*.h",
    "torch": "c10/metal/*.h",
    "ggml": "ggml-metal.metal",
}


def damaged(text, chance):
    """`text` with a few tokens dropped, doubled, swapped or replaced by others of the text."""
    tokens = TokenStream(text).tokens
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(4):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] *= 2
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = tokens[other]
    return "".join(tokens)


def survives(text, kernels=None, **options):
    """Whether the text compiles; if it does not, the error must be a good one.

    Parameters
    ----------
    kernels : int, optional
        How many of its kernels are asked for; all of them without.
    """
    try:
        lib = mtl.library(text, **options)
        for name in list(lib)[:kernels]:
            _ = lib[name]
    except mtl.CompileError as caught:
        error = caught
    else:
        return True
    lines = text.splitlines()
    assert error.diagnostics
    for diagnostic in error.diagnostics:
        if diagnostic.file != "program_source":
            assert Path(diagnostic.file).exists()  # an include that could not cope with the text
            continue
        assert diagnostic.source_line == lines[diagnostic.line - 1]
        assert 1 <= diagnostic.column <= len(diagnostic.source_line) + 1
    return False


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_damaged_kernels(source):
    chance = random.Random(source.name)
    text = source.read_text()
    with mtl.config.scope(cache_bytes=0):
        outcomes = [survives(damaged(text, chance)) for _ in range(3)]
    assert False in outcomes  # the damage tells


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_damaged_kernels_at_length(seed):
    chance = random.Random(seed)
    with mtl.config.scope(cache_bytes=0):
        for source in SOURCES:
            for _ in range(25):
                survives(damaged(source.read_text(), chance))


@functools.cache
def folder_of(origin):
    """Where real code lies; the test is skipped where it does not."""
    if origin == "ggml":
        folder = Path(os.environ.get("METALLOID_GGML", "nowhere"))
        if not (folder / REAL[origin]).is_file():
            pytest.skip("METALLOID_GGML does not name the folder of ggml's kernels")
        return folder
    spec = importlib.util.find_spec(origin)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(folder) / "include").is_dir():
            return Path(folder) / "include"
    pytest.skip(f"the headers of {origin} are not installed")


def damage_real_files(origin, chance, count):
    """Damage `count` files of `origin`, one after the other; how many of them still compile."""
    folder = folder_of(origin)
    files = sorted(folder.glob(REAL[origin]))
    survivors = 0
    with mtl.config.scope(cache_bytes=0):
        for _ in range(count):
            file = chance.choice(files)
            text = "#include <metal_stdlib>\n" + damaged(file.read_text(), chance)
            folders = [file.parent, folder, folder.parent]
            survivors += survives(text, kernels=2, include_dirs=folders)
    return survivors


@pytest.mark.parametrize("origin", REAL)
def test_damaged_real_files(origin):
    count = 12
    assert damage_real_files(origin, random.Random(origin), count) < count


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("origin", REAL)
def test_damaged_real_files_at_length(origin, seed):
    damage_real_files(origin, random.Random(f"{origin} {seed}"), 25)
