"""The IR of one thread, read, changed and printed again: clang compiles it to the same results.

What the passes before `shapes` make of a function is still code for one thread, so the reference
engine can run it.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import random_kernels
from test_engines_agree import INDEPENDENT, WAITING, results

import metalloid as mtl
from metalloid.backends.cpu import engines, reference
from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.compiler.llvm.parser import (
    flatten_address_spaces,
    parse_function,
    replace_function,
)
from metalloid.compiler.spmd.bfloats import keep_as_bits
from metalloid.compiler.spmd.canonical import make_canonical
from metalloid.compiler.spmd.components import take_apart
from metalloid.compiler.spmd.expand import expand_copies
from metalloid.compiler.spmd.regions import split_at_barriers


def nothing(function):
    """Only read and print."""


def all_of_them(function):
    """As `vectorise.parse` and `vectorise` do."""
    expand_copies(function)
    take_apart(function)
    keep_as_bits(function)
    split_at_barriers(function)
    make_canonical(function)


PASSES = (nothing, expand_copies, take_apart, split_at_barriers, make_canonical, all_of_them)


class Changed:
    """The reference engine, with a pass before clang's back end."""

    functions = staticmethod(reference.functions)
    _numbers = itertools.count(1)

    def __init__(self, change):
        self.change, self.texts, self.number = change, [], next(self._numbers)

    def lower(self, kernel, variant):
        lowered = reference.lower(kernel, variant)
        ir = flatten_address_spaces(lowered.ir)
        function = parse_function(ir, ENTRY_SYMBOL)
        self.change(function)
        self.texts.append((ir, replace_function(ir, function)))
        return replace(lowered, ir=self.texts[-1][1])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that no other test sees: what is in it was made by changed engines."""
    with mtl.config.scope(cache_dir=str(tmp_path_factory.mktemp("cache")), cpu_engine="reference"):
        yield


@pytest.fixture
def compiled(cache, monkeypatch):
    """A function: the library of a text, compiled by an engine that takes the reference's place."""

    def compile(text, engine):
        monkeypatch.setitem(engines._ENGINES, "reference", engine)
        # Its name is the same, so the text has to tell the engines apart in the cache.
        lib = mtl.library(f"{text}constant int compiled_by_{getattr(engine, 'number', 0)} = 0;\n")
        for name in lib:
            lib[name]
        return lib

    return compile


@pytest.mark.parametrize("waits", [False, True], ids=["independent", "waiting"])
@pytest.mark.parametrize("change", PASSES, ids=lambda change: change.__name__)
def test_the_same_results(change, waits, compiled):
    text = random_kernels.library_text(11, 2, waits)
    before = compiled(text, reference)
    engine = Changed(change)
    after = compiled(text, engine)
    assert len(engine.texts) == len(after)
    grid, group = (WAITING if waits else INDEPENDENT)[1]
    for name in before:
        expected, got = (results(lib, name, grid, group, 3) for lib in (before, after))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_printed_is_read_as_it_was(compiled):
    engine = Changed(nothing)
    compiled(random_kernels.library_text(12, 2, waits=True), engine)
    for before, after in engine.texts:
        first, second = (parse_function(ir, ENTRY_SYMBOL) for ir in (before, after))
        assert first.parameters == second.parameters
        assert [b.name for b in first.blocks.values()] == [b.name for b in second.blocks.values()]
        assert list(first.instructions()) == list(second.instructions())
