"""Damaged texts: an error at a place, or a library; never a crash, a hang or another exception."""

import random
from pathlib import Path

import pytest

import metalloid as mtl
from metalloid.msl.tokens import TokenStream

SOURCES = sorted([*Path("examples").glob("*.metal"), *Path("tests/errors").glob("*.metal"),
                  Path("src/metalloid/cli/julia.metal")])  # fmt: skip


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


def survives(text):
    """Whether the text compiles; if it does not, the error must be a good one."""
    try:
        lib = mtl.library(text)
        for name in lib:
            _ = lib[name]
    except mtl.CompileError as caught:
        error = caught
    else:
        return True
    lines = text.splitlines()
    assert error.diagnostics
    for diagnostic in error.diagnostics:
        assert diagnostic.file == "program_source"
        assert diagnostic.source_line == lines[diagnostic.line - 1]
        assert 1 <= diagnostic.column <= len(diagnostic.source_line) + 1
    return False


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_damaged_kernels(source):
    chance = random.Random(source.name)
    text = source.read_text()
    with mtl.config.scope(cache_bytes=0):
        outcomes = [survives(damaged(text, chance)) for _ in range(25)]
    assert False in outcomes  # the damage tells


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_damaged_kernels_at_length(seed):
    chance = random.Random(seed)
    with mtl.config.scope(cache_bytes=0):
        for source in SOURCES:
            for _ in range(25):
                survives(damaged(source.read_text(), chance))
